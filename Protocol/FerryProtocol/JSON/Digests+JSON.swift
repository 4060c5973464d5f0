extension DigestQuery {
  /// Returns the encoded query.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 160 + nodes.count * 8)
    json.object { json in
      json.member("cursor", cursor.description)
      if let after { json.member("after", after) }
      guard let table else { return }
      json.member("table", table)
      json.key("nodes")
      json.array(of: nodes.lazy.map(\.description))
    }
    return json.finish()
  }

  /// Reads a query and checks it against `limits`.
  package init(decoding bytes: [UInt8], limits: Limits) throws(MalformedMessage) {
    self = try decode(bytes, depth: limits.depth) { (reader) throws(MalformedMessage) in
      var cursor: Cursor?
      var table: Name?
      var nodes: [DigestNode] = []
      var after: Name?
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "cursor": cursor = Cursor(try reader.string())
        case "after": after = try reader.recordName(limits: limits)
        case "table": table = try reader.tableName(limits: limits)
        case "nodes":
          nodes = []
          try reader.array { (reader) throws(MalformedMessage) in
            guard nodes.count < DigestQuery.nodesMax else {
              throw reader.malformed("more than \(DigestQuery.nodesMax) nodes")
            }
            nodes.append(try reader.digestNode())
          }
        default: try reader.skip()
        }
      }
      guard let cursor else { throw reader.malformed("a query for digests without a cursor") }
      guard (table == nil) == nodes.isEmpty else {
        throw reader.malformed("a table and its nodes are named together")
      }
      guard DigestNode.areApart(nodes) else {
        throw reader.malformed("a node is named twice, or contains another one")
      }
      if after != nil, let first = nodes.first, !first.isLeaf {
        throw reader.malformed("only the records of a leaf continue after a name")
      }
      return DigestQuery(cursor: cursor, table: table, nodes: nodes, after: after)
    }
  }
}

extension DigestAnswer {
  /// Returns the encoded answer.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 4_096)
    json.object { json in
      json.member("epoch", epoch.description)
      json.member("head", digits: head)
      json.member("folded", digits: folded)
      switch content {
      case .behind: break
      case .tables(let tables):
        json.key("tables")
        json.array(of: tables) { json, table in json.table(table) }
      case .nodes(let nodes):
        json.key("nodes")
        json.array(of: nodes) { json, node in json.node(node) }
      }
      if more { json.member("more", true) }
    }
    return json.finish()
  }

  package init(decoding bytes: [UInt8], limits: Limits) throws(MalformedMessage) {
    self = try decode(bytes, depth: limits.depth) { (reader) throws(MalformedMessage) in
      var epoch: Epoch?
      var head: SequenceNumber?
      var folded: SequenceNumber?
      var content = Content.behind
      var more = false
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "epoch": epoch = Epoch(try reader.string())
        case "head": head = try reader.sequence()
        case "folded": folded = try reader.sequence()
        case "tables":
          var tables: [TableDigest] = []
          try reader.array { (reader) throws(MalformedMessage) in
            tables.append(try reader.tableDigest(limits))
          }
          content = .tables(tables)
        case "nodes":
          var nodes: [Node] = []
          try reader.array { (reader) throws(MalformedMessage) in
            nodes.append(try reader.node(limits))
          }
          content = .nodes(nodes)
        case "more": more = try reader.bool()
        default: try reader.skip()
        }
      }
      guard let epoch, let head, let folded else {
        throw reader.malformed("an answer without epoch, head or folded")
      }
      if more, content.lastName == nil {
        throw reader.malformed("more digests, and no name after which they continue")
      }
      return DigestAnswer(
        epoch: epoch, head: head, folded: folded, content: content, more: more)
    }
  }
}

extension DigestAnswer.Content {
  /// The name after which the content may continue; `nil` if there is none.
  package var lastName: Name? {
    switch self {
    case .behind: nil
    case .tables(let tables): tables.last?.table
    case .nodes(let nodes):
      if case .records(let records)? = nodes.last?.digests { records.last?.record } else { nil }
    }
  }
}

extension JSONWriter {
  fileprivate mutating func table(_ table: DigestAnswer.TableDigest) {
    object { json in
      json.member("table", table.table)
      json.member("records", table.records)
      json.member("digest", table.digest.description)
    }
  }

  /// Writes a node; one without records is `null` among the parent's children.
  fileprivate mutating func node(_ node: DigestAnswer.Node) {
    object { json in
      json.member("node", node.node.description)
      switch node.digests {
      case .children(let digests):
        json.key("children")
        json.array(of: digests) { json, digest in
          if digest == .zero { json.raw("null") } else { json.string(digest.description) }
        }
      case .records(let records):
        json.key("records")
        json.array(of: records) { json, record in
          json.pair(record.record, record.digest.description)
        }
      }
    }
  }
}

extension JSONReader {
  fileprivate mutating func digestNode() throws(MalformedMessage) -> DigestNode {
    guard let node = DigestNode(try string()) else {
      throw malformed("a node is named by 0 to \(DigestNode.depthMax) hexadecimal digits")
    }
    return node
  }

  private mutating func digest() throws(MalformedMessage) -> Digest {
    guard let digest = Digest(try string()) else {
      throw malformed("a digest has 32 hexadecimal digits")
    }
    return digest
  }

  fileprivate mutating func tableDigest(
    _ limits: Limits
  ) throws(MalformedMessage) -> DigestAnswer.TableDigest {
    var table: Name?
    var records: Int?
    var digest: Digest?
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "table": table = try reader.tableName(limits: limits)
      case "records": records = try reader.count()
      case "digest": digest = try reader.digest()
      default: try reader.skip()
      }
    }
    guard let table, let records, let digest else {
      throw malformed("a table without name, records or digest")
    }
    return DigestAnswer.TableDigest(table: table, records: records, digest: digest)
  }

  fileprivate mutating func node(_ limits: Limits) throws(MalformedMessage) -> DigestAnswer.Node {
    var node: DigestNode?
    var digests: NodeDigests?
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "node": node = try reader.digestNode()
      case "children": digests = .children(try reader.childDigests())
      case "records": digests = .records(try reader.recordDigests(limits))
      default: try reader.skip()
      }
    }
    guard let node, let digests else { throw malformed("a node without name or digests") }
    if case .records = digests, !node.isLeaf { throw malformed("only leaves list records") }
    if case .children = digests, node.isLeaf { throw malformed("a leaf has no children") }
    return DigestAnswer.Node(node: node, digests: digests)
  }

  private mutating func childDigests() throws(MalformedMessage) -> [Digest] {
    var children: [Digest] = []
    try array { (reader) throws(MalformedMessage) in
      children.append(try reader.null() ? .zero : try reader.digest())
    }
    guard children.count == 16 else { throw malformed("a node has sixteen children") }
    return children
  }

  private mutating func recordDigests(
    _ limits: Limits
  ) throws(MalformedMessage) -> [NodeDigests.RecordDigest] {
    var records: [NodeDigests.RecordDigest] = []
    try array { (reader) throws(MalformedMessage) in
      var record: Name?
      var digest: Digest?
      try reader.array { (reader) throws(MalformedMessage) in
        if record == nil {
          record = try reader.recordName(limits: limits)
        } else if digest == nil {
          digest = try reader.digest()
        } else {
          throw reader.malformed("a record comes with its digest")
        }
      }
      guard let record, let digest else {
        throw reader.malformed("a record comes with its digest")
      }
      records.append(NodeDigests.RecordDigest(record: record, digest: digest))
    }
    return records
  }
}

extension DigestQuery: JSONMessage {
  package static var noun: String? { "a query for digests" }
  package static var blank: Self { Self(cursor: Cursor(epoch: Epoch(0), applied: 0)) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("cursor", &cursor)
    try json.optional("after", &after, as: .record)
    try json.optional("table", &table, as: .column)
    try json.omitting("nodes", &nodes, [], as: .list(max: Self.nodesMax, "nodes"))
    try json.check(
      (table == nil) == nodes.isEmpty, "a table and its nodes are named together")
    try json.check(DigestNode.areApart(nodes), "a node is named twice, or contains another one")
    try json.check(
      after == nil || nodes.first?.isLeaf ?? true,
      "only the records of a leaf continue after a name")
  }
}

extension DigestAnswer: JSONMessage {
  package static var noun: String? { "an answer about digests" }
  package static var blank: Self { Self(epoch: Epoch(0), head: 0, folded: 0, content: .behind) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("epoch", &epoch)
    try json.required("head", &head, as: .sequence)
    try json.required("folded", &folded, as: .sequence)
    try json.optional("tables", &content.tables)
    try json.optional("nodes", &content.nodes)
    try json.omitting("more", &more, false)
    try json.check(
      !more || content.lastName != nil, "more digests, and no name after which they continue")
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

  fileprivate var tables: [DigestAnswer.TableDigest]? {
    get { if case .tables(let tables) = self { tables } else { nil } }
    set { if let newValue { self = .tables(newValue) } }
  }

  fileprivate var nodes: [DigestAnswer.Node]? {
    get { if case .nodes(let nodes) = self { nodes } else { nil } }
    set { if let newValue { self = .nodes(newValue) } }
  }
}

extension DigestAnswer.TableDigest: JSONMessage {
  package static var blank: Self { Self(table: "", records: 0, digest: .zero) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("table", &table, as: .column)
    try json.required("records", &records)
    try json.required("digest", &digest)
  }
}

extension DigestAnswer.Node: JSONMessage {
  package static var blank: Self { Self(node: .root, digests: .children([])) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("node", &node)
    try json.optional("children", &digests.children, as: JSONForm.child.list(max: 16, "children"))
    try json.optional("records", &digests.records, as: JSONForm.named.list(max: .max))
    try json.check(
      digests.records == nil || node.isLeaf, "only leaves list records")
    try json.check(
      digests.children.map { !node.isLeaf && $0.count == 16 } ?? true,
      "a leaf lists records, and another node has sixteen children")
  }
}

extension NodeDigests {
  fileprivate var children: [Digest]? {
    get { if case .children(let children) = self { children } else { nil } }
    set { if let newValue { self = .children(newValue) } }
  }

  fileprivate var records: [RecordDigest]? {
    get { if case .records(let records) = self { records } else { nil } }
    set { if let newValue { self = .records(newValue) } }
  }
}

extension JSONForm where T == Digest {
  /// A child's digest; null if the child has no records.
  fileprivate static var child: JSONForm {
    JSONForm { (reader, rules) throws(MalformedMessage) in
      try reader.null() ? .zero : try Digest(from: &reader, rules)
    } write: { json, digest in
      if digest == .zero { json.raw("null") } else { json.string(digest.description) }
    }
  }
}

extension JSONForm<NodeDigests.RecordDigest> {
  fileprivate static var named: JSONForm {
    pair(JSONForm<Name>.record, JSONForm<Digest>.value, "a record comes with its digest") {
      NodeDigests.RecordDigest(record: $0, digest: $1)
    } parts: {
      ($0.record, $0.digest)
    }
  }
}

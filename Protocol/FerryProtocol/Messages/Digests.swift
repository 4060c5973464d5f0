/// The body of `POST …/digests`: it asks for the digests of all tables, or of nodes of one table's
/// hash tree (SPEC.md §16).
package struct DigestQuery: Sendable, Equatable {
  /// Nodes in one request.
  package static let nodesMax = 256

  /// The device's progress. The answer is right for every record without later changes.
  package var cursor: Cursor
  /// `nil` asks for all tables.
  package var table: Name?
  /// Nodes of the table's tree, ``nodesMax`` at most.
  package var nodes: [DigestNode]
  /// The name after which a list continues: of a table, or of a record of the first node, which is
  /// a leaf then.
  package var after: Name?

  package init(
    cursor: Cursor, table: Name? = nil, nodes: [DigestNode] = [], after: Name? = nil
  ) {
    self.cursor = cursor
    self.table = table
    self.nodes = nodes
    self.after = after
  }
}

/// The digests below a node.
package enum NodeDigests: Sendable, Equatable {
  /// The digests of a node's sixteen children.
  case children([Digest])
  /// A leaf's records with their digests, by identifier's bytes.
  case records([RecordDigest])

  package struct RecordDigest: Sendable, Equatable {
    package let record: Name
    package let digest: Digest

    package init(record: Name, digest: Digest) {
      self.record = record
      self.digest = digest
    }
  }
}

/// The answer to ``DigestQuery``.
package struct DigestAnswer: Sendable, Equatable {
  package struct TableDigest: Sendable, Equatable {
    package var table: Name
    /// Existing records.
    package var records: Int
    package var digest: Digest

    package init(table: Name, records: Int, digest: Digest) {
      self.table = table
      self.records = records
      self.digest = digest
    }
  }

  package struct Node: Sendable, Equatable {
    package var node: DigestNode
    package var digests: NodeDigests

    package init(node: DigestNode, digests: NodeDigests) {
      self.node = node
      self.digests = digests
    }
  }

  package enum Content: Sendable, Equatable {
    /// The sums do not reach the cursor yet: ask again.
    case behind
    /// Tables with records, by name's bytes.
    case tables([TableDigest])
    /// In the order of the request; the last ones may be left out, never the first.
    case nodes([Node])
  }

  package var epoch: Epoch
  package var head: SequenceNumber
  /// The sequence up to which the sums hold every change.
  package var folded: SequenceNumber
  package var content: Content
  /// True if the tables continue after the last one, or the records of the last node.
  package var more: Bool

  package init(
    epoch: Epoch, head: SequenceNumber, folded: SequenceNumber, content: Content,
    more: Bool = false
  ) {
    self.more = more
    self.epoch = epoch
    self.head = head
    self.folded = folded
    self.content = content
  }
}

/// A search for the leaves in which two trees differ, from the root down. It asks only about nodes
/// with a difference below them.
package struct DigestDescent: Sendable {
  private let ours: DigestSums
  /// Nodes that differ and whose children are not known yet.
  private var waiting: [DigestNode]
  /// Leaves that differ, by number, ascending.
  package private(set) var leaves: [Int] = []

  /// - Parameter theirs: the other tree's root.
  package init(ours: DigestSums, theirs: Digest) {
    self.ours = ours
    waiting = ours[.root] == theirs ? [] : [.root]
  }

  /// Whether all differing leaves are known.
  package var isDone: Bool { waiting.isEmpty }

  /// Returns the nodes to ask about next, `limit` at most; none when done.
  package func questions(limit: Int) -> [DigestNode] { Array(waiting.prefix(limit)) }

  /// Takes the other side's answer: the digests of nodes' sixteen children. Nodes that it left out
  /// are asked for again.
  package mutating func apply(_ answers: [(node: DigestNode, children: [Digest])]) {
    var answered = Set<DigestNode>()
    for (node, children) in answers where children.count == 16 && !node.isLeaf {
      answered.insert(node)
      for (child, theirs) in zip(node.children, children) where ours[child] != theirs {
        if child.isLeaf { leaves.append(child.prefix) } else { waiting.append(child) }
      }
    }
    waiting.removeAll { answered.contains($0) }
    // Whole levels are asked for in order, so this costs least.
    leaves.sort()
  }
}

/// The comparison of the records of leaves.
package enum LeafComparison {
  /// Records that are not the same on both sides, by their bytes, ascending.
  package static func differing(
    ours: [RecordKey: Digest], theirs: [RecordKey: Digest]
  ) -> [RecordKey] {
    var found: [RecordKey] = []
    for (key, digest) in ours where theirs[key] != digest { found.append(key) }
    for key in theirs.keys where ours[key] == nil { found.append(key) }
    return found.sorted()
  }
}

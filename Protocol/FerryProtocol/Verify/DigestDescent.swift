/// A search for the leaves in which two trees differ, from the root down. It asks only about nodes
/// with a difference below them.
package struct DigestDescent: Sendable {
  private let ours: DigestSums
  /// Differing nodes with unknown children.
  private var waiting: [DigestNode]
  /// Differing leaves, by number, ascending.
  package private(set) var leaves: [Int] = []

  /// - Parameter theirs: the other tree's root.
  package init(ours: DigestSums, theirs: Digest) {
    self.ours = ours
    waiting = ours[.root] == theirs ? [] : [.root]
  }

  /// True if all differing leaves are known.
  package var isDone: Bool { waiting.isEmpty }

  /// Returns the nodes to ask about next, `limit` at most; none when done.
  package func questions(limit: Int) -> [DigestNode] { Array(waiting.prefix(limit)) }

  /// Applies the other side's answer: the digests of nodes' sixteen children. Omitted nodes are
  /// requested again.
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
  /// Returns the records that differ between both sides, by their bytes, ascending.
  package static func differing(
    ours: [RecordKey: Digest], theirs: [RecordKey: Digest]
  ) -> [RecordKey] {
    var found: [RecordKey] = []
    for (key, digest) in ours where theirs[key] != digest { found.append(key) }
    for key in theirs.keys where ours[key] == nil { found.append(key) }
    return found.sorted()
  }
}

/// A node of a table's hash tree: all records whose place begins with the same hexadecimal
/// digits. The root has no digits, a leaf has four (SPEC.md §16).
package struct DigestNode: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// Digits of a leaf.
  package static let depthMax = 4
  /// Leaves of a tree.
  package static let leafCount = 1 << (4 * depthMax)

  /// The number of digits, 0 to ``depthMax``.
  package let depth: Int
  /// The digits as a number.
  package let prefix: Int

  package init(depth: Int, prefix: Int) {
    self.depth = depth
    self.prefix = prefix
  }

  /// All records of a table.
  package static let root = DigestNode(depth: 0, prefix: 0)

  /// Returns a leaf by number.
  package static func leaf(_ number: Int) -> DigestNode {
    DigestNode(depth: depthMax, prefix: number)
  }

  /// Returns the leaf of a record: the first 16 bits of the hash of the identifier's bytes.
  package static func leaf(of record: UnsafeRawBufferPointer) -> Int {
    Int(SipHash.hash(record) >> 112)
  }

  /// Returns the leaf of a record.
  package static func leaf(of record: Name) -> Int {
    record.withBytes { leaf(of: $0) }
  }

  package var isLeaf: Bool { depth == Self.depthMax }

  /// The numbers of the leaves below.
  package var leaves: ClosedRange<Int> {
    let shift = 4 * (Self.depthMax - depth)
    return prefix << shift...(prefix << shift | (1 << shift - 1))
  }

  /// The sixteen nodes below, none for a leaf.
  package var children: [DigestNode] {
    isLeaf ? [] : (0..<16).map { DigestNode(depth: depth + 1, prefix: prefix << 4 | $0) }
  }

  /// The digits, as on the wire.
  package var description: String {
    let digits = depth == 0 ? "" : String(prefix, radix: 16)
    return String(repeating: "0", count: depth - digits.utf8.count) + digits
  }

  /// Parses the wire form; lower case only, so a node has one name.
  package init?(_ text: String) {
    let isHexadecimal = text.utf8.allSatisfy {
      (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
    }
    guard text.utf8.count <= Self.depthMax, isHexadecimal,
      let prefix = text.isEmpty ? 0 : Int(text, radix: 16)
    else { return nil }
    self.init(depth: text.utf8.count, prefix: prefix)
  }

  /// Returns `true` if no two nodes have a leaf in common.
  package static func areApart(_ nodes: [DigestNode]) -> Bool {
    let leaves = nodes.map(\.leaves).sorted { $0.lowerBound < $1.lowerBound }
    return zip(leaves, leaves.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }
  }

  package static func < (left: DigestNode, right: DigestNode) -> Bool {
    (left.depth, left.prefix) < (right.depth, right.prefix)
  }
}

/// The sums of a table's leaves.
package struct DigestSums: Sendable, Equatable {
  private var leaves = [Digest](repeating: .zero, count: DigestNode.leafCount)
  /// Records in it.
  package private(set) var recordCount = 0

  package init() {}

  package mutating func add(_ digest: Digest, to leaf: Int) {
    leaves[leaf] += digest
    recordCount += 1
  }

  package mutating func remove(_ digest: Digest, from leaf: Int) {
    leaves[leaf] -= digest
    recordCount -= 1
  }

  /// Returns the sum of the records below a node.
  package subscript(node: DigestNode) -> Digest {
    var sum = Digest.zero
    for leaf in node.leaves { sum += leaves[leaf] }
    return sum
  }
}

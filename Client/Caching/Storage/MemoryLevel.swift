/// Bodies in memory, by the ids of the answers on disk: the most recently used ones, within limits
/// of bytes and age.
///
/// An id's body never changes, so a body found here needs no check of the disk, whatever other
/// processes do.
package struct MemoryLevel: Sendable {
  private struct Node {
    var body: [UInt8]
    var since: Int64
    var older: Int64?
    var newer: Int64?
  }

  private let bytesMax: Int
  private let ageMax: Int64
  private var nodes: [Int64: Node] = [:]
  private var newest: Int64?
  private var oldest: Int64?
  /// Bytes of all bodies.
  package private(set) var bytes = 0

  /// Creates an empty level; `ageMax` in milliseconds.
  package init(bytesMax: Int, ageMax: Int64) {
    self.bytesMax = bytesMax
    self.ageMax = ageMax
  }

  /// The number of bodies.
  package var count: Int { nodes.count }

  /// Returns the body of `id`, and makes it the most recently used one.
  package mutating func body(of id: Int64, now: Int64) -> [UInt8]? {
    guard let node = nodes[id] else { return nil }
    unlink(id)
    guard isYoung(node, now) else { return nil }
    link(id, node)
    return node.body
  }

  /// Stores a body, and drops the least recently used ones if there is no room. It ignores a body
  /// of more than a quarter of the room.
  package mutating func store(_ body: [UInt8], of id: Int64, now: Int64) {
    unlink(id)
    guard body.count <= bytesMax / 4 else { return }
    link(id, Node(body: body, since: now))
    while let oldest, bytes > bytesMax || nodes[oldest].map({ !isYoung($0, now) }) == true {
      unlink(oldest)
    }
  }

  /// Removes the body of `id`.
  package mutating func remove(_ id: Int64) { unlink(id) }

  /// Removes all bodies.
  package mutating func removeAll() { self = MemoryLevel(bytesMax: bytesMax, ageMax: ageMax) }

  /// Returns true if a body is within the age limit; a clock that jumps backwards does not extend
  /// it.
  private func isYoung(_ node: Node, _ now: Int64) -> Bool {
    0...ageMax ~= now - node.since
  }

  private mutating func link(_ id: Int64, _ node: Node) {
    var node = node
    (node.older, node.newer) = (newest, nil)
    if let newest { nodes[newest]?.newer = id }
    nodes[id] = node
    newest = id
    oldest = oldest ?? id
    bytes += node.body.count
  }

  private mutating func unlink(_ id: Int64) {
    guard let node = nodes.removeValue(forKey: id) else { return }
    if let older = node.older { nodes[older]?.newer = node.newer } else { oldest = node.newer }
    if let newer = node.newer { nodes[newer]?.older = node.older } else { newest = node.older }
    bytes -= node.body.count
  }
}

/// The longest common subsequence of two lists (Myers, "An O(ND) difference algorithm and its
/// variations", 1986), with a bound on the differences.
enum LineDiff {
  /// Returns the place in `new` of each element of `old`, or −1; `nil` if more than `editsMax`
  /// elements were added and removed.
  static func matches(_ old: [Int32], _ new: [Int32], editsMax: Int) -> [Int32]? {
    var places = [Int32](repeating: -1, count: old.count)
    var start = 0
    while start < old.count, start < new.count, old[start] == new[start] {
      places[start] = Int32(start)
      start += 1
    }
    var (oldEnd, newEnd) = (old.count, new.count)
    while oldEnd > start, newEnd > start, old[oldEnd - 1] == new[newEnd - 1] {
      oldEnd -= 1
      newEnd -= 1
      places[oldEnd] = Int32(newEnd)
    }
    let (oldPart, newPart) = (old[start..<oldEnd], new[start..<newEnd])
    guard let trace = trace(oldPart, newPart, editsMax: editsMax) else { return nil }
    backtrack(trace, oldPart, newPart, &places)
    return places
  }

  /// The reach of each diagonal after 0, 1, 2, … edits: the number of finished elements of `old`.
  /// Diagonal k = old − new is at index k + edits.
  private typealias Trace = [[Int32]]

  private static let unreachable = Int32.min / 2

  private static func trace(
    _ old: ArraySlice<Int32>, _ new: ArraySlice<Int32>, editsMax: Int
  ) -> Trace? {
    var trace: Trace = []
    for edits in 0...min(old.count + new.count, editsMax) {
      var reached = [Int32](repeating: unreachable, count: 2 * edits + 1)
      for diagonal in stride(from: -edits, through: edits, by: 2) {
        var x = edits == 0 ? 0 : step(trace[edits - 1], diagonal, edits).x
        var y = x - diagonal
        guard (0...old.count).contains(x), (0...new.count).contains(y) else { continue }
        while x < old.count, y < new.count,
          old[old.startIndex + x] == new[new.startIndex + y]
        {
          x += 1
          y += 1
        }
        reached[diagonal + edits] = Int32(x)
        if x == old.count && y == new.count { return trace + [reached] }
      }
      trace.append(reached)
    }
    return nil
  }

  /// Returns the place to which one more edit leads on `diagonal`, and whether it adds an element
  /// of `new` rather than removing one of `old`.
  private static func step(
    _ before: [Int32], _ diagonal: Int, _ edits: Int
  ) -> (x: Int, adds: Bool) {
    // `before` has the diagonals −(edits − 1) … edits − 1.
    let added = diagonal < edits - 1 ? Int(before[diagonal + edits]) : Int(unreachable)
    let taken = diagonal > 1 - edits ? Int(before[diagonal + edits - 2]) : Int(unreachable)
    return added > taken ? (added, true) : (taken + 1, false)
  }

  /// Walks back from the end and records the common elements of both lists.
  private static func backtrack(
    _ trace: Trace, _ old: ArraySlice<Int32>, _ new: ArraySlice<Int32>, _ places: inout [Int32]
  ) {
    var (x, y) = (old.count, new.count)
    for edits in stride(from: trace.count - 1, through: 0, by: -1) {
      let diagonal = x - y
      let step = edits == 0 ? (x: 0, adds: false) : step(trace[edits - 1], diagonal, edits)
      while x > step.x {
        x -= 1
        y -= 1
        places[old.startIndex + x] = Int32(new.startIndex + y)
      }
      if edits > 0 { if step.adds { y -= 1 } else { x -= 1 } }
    }
  }
}

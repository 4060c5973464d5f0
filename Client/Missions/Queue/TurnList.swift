/// Downloads ready to start, in the order of their turns.
struct TurnList: Sendable {
  /// The place of a download in the order: higher priorities first, then earlier additions.
  struct Turn: Sendable, Comparable {
    var priority: Int
    /// The number in the order of addition.
    var number: Int64
    var id: DownloadID

    static func < (left: Self, right: Self) -> Bool {
      (right.priority, left.number) < (left.priority, right.number)
    }
  }

  /// The last turn comes first in the array, so the next one is removed at the end.
  private var turns: [Turn] = []

  /// Adds a turn; the list must not have it yet.
  mutating func insert(_ turn: Turn) { turns.insert(turn, at: place(of: turn)) }

  /// Removes a turn, if it is in the list.
  mutating func remove(_ turn: Turn) {
    let place = place(of: turn)
    if place < turns.count, turns[place] == turn { turns.remove(at: place) }
  }

  /// Removes and returns the next download.
  mutating func next() -> DownloadID? { turns.popLast()?.id }

  /// Returns the place of a turn, by bisection.
  private func place(of turn: Turn) -> Int {
    var range = 0..<turns.count
    while !range.isEmpty {
      let middle = range.lowerBound + range.count / 2
      range =
        turn < turns[middle]
        ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return range.lowerBound
  }
}

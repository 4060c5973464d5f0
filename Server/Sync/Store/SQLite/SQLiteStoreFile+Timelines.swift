import FerryProtocol
import FerrySQLite

extension SQLiteStoreFile {
  /// Runs one durable transaction that may assign places in a space's order.
  func change<T>(_ space: Int64, _ body: () throws -> T) throws -> T {
    unsettled = nil
    let result = try connection.transaction { try body() }
    if let unsettled { timelines.update(unsettled, of: space) }
    return result
  }

  /// Returns the end of a timeline: the beginning of the next one, `.max` if there is none. Returns
  /// `nil` if the space does not know it.
  func end(of timeline: Timeline, in space: Int64) throws -> SequenceNumber? {
    try connection.first(
      """
      SELECT (SELECT min(next.began) FROM timelines AS next
        WHERE next.space = ?1 AND next.began > t.began)
      FROM timelines AS t WHERE t.space = ?1 AND t.timeline = ?2
      """, space, timeline.value
    ) { $0.optionalInt64(0) ?? .max }
  }

  /// Stores a new timeline, if one begins.
  func saveTimeline(_ state: SpaceState, in space: Int64) throws {
    guard let start = state.timelineStart, let timeline = state.timeline else { return }
    try connection.run(
      "INSERT INTO timelines(space, began, timeline) VALUES (?, ?, ?)", space, start, timeline.value
    )
  }
}

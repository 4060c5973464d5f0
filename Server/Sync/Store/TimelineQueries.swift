import FerryProtocol

// The timelines of a space, in both stores.
extension PlainConnection {
  /// Returns the ends of the timelines known in a space: the beginning of the next one, `.max` if
  /// there is none.
  func ends(of timelines: [Timeline], in space: Int64) throws -> [Timeline: SequenceNumber] {
    let ends = try rows(
      TimelineQueries.ends, [.integer(space)],
      of: timelines.map { [.integer(Int64(bitPattern: $0.value))] }
    ) { place, row in (timelines[place], try row.optionalInteger(0) ?? .max) }
    return Dictionary(ends) { first, _ in first }
  }
}

enum TimelineQueries {
  /// The end of a timeline `t`, if `$1` is the space: the beginning of the next one; null if there
  /// is none.
  static let end = """
    (SELECT next.began FROM timelines AS next WHERE next.space = $1 AND next.began > t.began
      ORDER BY next.began LIMIT 1)
    """

  /// A timeline unknown in the space has no row.
  fileprivate static let ends = PlainBatch.find(
    "timeline_ends", [.init("timeline", .integer)]
  ) { key in
    """
    SELECT \(end) FROM timelines AS t
    WHERE t.space = $1 AND t.timeline = \(key("timeline"))
    """
  }

  /// Returns the look-up of the end of one timeline, if it is known in the space.
  static func end(
    of timeline: Timeline, in space: Int64, _ read: @escaping (SequenceNumber) -> Void
  ) -> PlainStep {
    let name = Int64(bitPattern: timeline.value)
    return .many(ends, [.integer(space)], of: [[.integer(name)]]) { _, row in
      read(try row.optionalInteger(0) ?? .max)
    }
  }

  private static let save = PlainStatement(
    "timeline_save", "INSERT INTO timelines(space, began, timeline) VALUES ($1, $2, $3)")

  /// Returns the writes of a new timeline, if one begins.
  static func beginning(of state: SpaceState, in space: Int64) -> [PlainStep] {
    guard let start = state.timelineStart, let timeline = state.timeline else { return [] }
    let name = Int64(bitPattern: timeline.value)
    return [.one(save, [.integer(space), .integer(start), .integer(name)])]
  }
}

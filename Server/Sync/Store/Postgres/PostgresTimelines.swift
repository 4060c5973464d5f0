import FerryPostgres
import FerryProtocol

/// A space's own row under its lock, and the space's timelines.
struct PostgresTimelines {
  let space: Int64
  /// The timelines of this run.
  let own: OwnTimelines

  private static let lock = PostgresStatement(
    "lock",
    """
    SELECT epoch, head, clock, newest, schema_version, minimum_protocol, retention_horizon,
      history_hash, timeline
    FROM spaces WHERE id = $1 FOR UPDATE
    """)

  private static let save = PostgresStatement(
    "timeline_save", "INSERT INTO timelines(space, began, timeline) VALUES ($1, $2, $3)")

  /// A timeline unknown in the space has no row.
  private static let ends = PostgresStatement(
    "timeline_ends",
    """
    SELECT found.* FROM unnest($2::bigint[]) AS wanted(timeline) CROSS JOIN LATERAL (
      SELECT t.timeline, \(end) FROM timelines AS t
      WHERE t.space = $1 AND t.timeline = wanted.timeline OFFSET 0
    ) AS found
    """)

  /// The end of a timeline `t`, if `$1` is the space: the beginning of the next one; null if there
  /// is none.
  static let end = """
    (SELECT next.began FROM timelines AS next WHERE next.space = $1 AND next.began > t.began
      ORDER BY next.began LIMIT 1)
    """

  /// Returns the part of FROM that looks up a timeline, as `t` with the end of it.
  ///
  /// - Parameter name: The parameter with the timeline's name.
  static func joined(_ name: String) -> String {
    """
    LEFT JOIN LATERAL (
      SELECT t.timeline, \(end) AS ended FROM timelines AS t
      WHERE t.space = $1 AND t.timeline = \(name) OFFSET 0
    ) AS t ON true
    """
  }

  func addLock(to pipeline: inout PostgresPipeline) { pipeline.add(Self.lock, [.int8(space)]) }

  /// Reads the space from the rows requested by ``addLock(to:)``.
  func state(_ rows: PostgresRows) throws -> SpaceState {
    guard let row = rows.first else { throw StoreError.spaceGone }
    var state = SpaceState(
      epoch: Epoch(UInt64(bitPattern: try row.int8(0))), head: try row.int8(1),
      newest: row.isNull(3) ? nil : OperationID(uuidBytes: try row.uuidBytes(3)),
      historyHash: UInt64(bitPattern: try row.int8(7)),
      clock: HybridTimestamp(rawValue: UInt64(bitPattern: try row.int8(2))),
      schemaVersion: try row.int8(4), minimumProtocol: Int(try row.int8(5)),
      retentionHorizon: try row.int8(6), timeline: try row.timeline(8))
    state.nextTimeline = own.next(in: space, head: state.head)
    return state
  }

  /// Locks the space until the transaction ends.
  func lock(on connection: PostgresConnection) throws -> SpaceState {
    try state(connection.query(Self.lock, [.int8(space)]))
  }

  /// Returns the ends of the timelines known here.
  func ends(
    of timelines: [Timeline], on connection: PostgresConnection
  ) throws -> [Timeline: SequenceNumber] {
    if timelines.isEmpty { return [:] }
    var names = PostgresArray<Int64>()
    for timeline in timelines { names.append(Int64(bitPattern: timeline.value)) }
    var ends: [Timeline: SequenceNumber] = [:]
    for row in try connection.query(Self.ends, [.int8(space), .array(names)]) {
      let timeline = Timeline(UInt64(bitPattern: try row.int8(0)))
      ends[timeline] = row.isNull(1) ? .max : try row.int8(1)
    }
    return ends
  }

  /// Stores a new timeline, if one begins.
  static func add(_ state: SpaceState, in space: Int64, to pipeline: inout PostgresPipeline) {
    guard let start = state.timelineStart, let timeline = state.timeline else { return }
    pipeline.add(
      save, [.int8(space), .int8(start), .int8(Int64(bitPattern: timeline.value))])
  }
}

extension PostgresParameters {
  /// Appends a timeline, or null.
  mutating func append(_ timeline: Timeline?) {
    append(timeline.map { Int64(bitPattern: $0.value) })
  }
}

extension PostgresRow {
  /// Returns the end of a timeline, by its own column and ``PostgresTimelines/end``.
  func timelineEnd(_ timeline: Int, _ end: Int) throws -> SequenceNumber? {
    isNull(timeline) ? nil : isNull(end) ? .max : try int8(end)
  }

  /// Returns a column with an optional timeline.
  func timeline(_ index: Int) throws -> Timeline? {
    isNull(index) ? nil : Timeline(UInt64(bitPattern: try int8(index)))
  }
}

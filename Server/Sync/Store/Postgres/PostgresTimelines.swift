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

  /// Returns the part of FROM that looks up a timeline, as `t` with the end of it.
  ///
  /// - Parameter name: The parameter with the timeline's name.
  static func joined(_ name: String) -> String {
    """
    LEFT JOIN LATERAL (
      SELECT t.timeline, \(TimelineQueries.end) AS ended FROM timelines AS t
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
}

extension PostgresParameters {
  /// Appends a timeline, or null.
  mutating func append(_ timeline: Timeline?) {
    append(timeline.map { Int64(bitPattern: $0.value) })
  }
}

extension PostgresRow {
  /// Returns the end of a timeline, by its own column and ``TimelineQueries/end``.
  func timelineEnd(_ timeline: Int, _ end: Int) throws -> SequenceNumber? {
    isNull(timeline) ? nil : isNull(end) ? .max : try int8(end)
  }

  /// Returns a column with an optional timeline.
  func timeline(_ index: Int) throws -> Timeline? {
    isNull(index) ? nil : Timeline(UInt64(bitPattern: try int8(index)))
  }
}

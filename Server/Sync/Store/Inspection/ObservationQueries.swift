import FerryProtocol

// Observations of devices, refusals and activity, in both stores.
extension SyncStore {
  /// Writes observations down.
  package func store(_ observations: Observations, now: Int64) async throws(StoreError) {
    if observations.isEmpty { return }
    try await plain(.writing) { connection in
      // Each list in the order of the keys: nodes that write at once never wait for each other in a
      // circle.
      try connection.together {
        try connection.write(ObservationQueries.see, observations.sightings.map(\.values))
        try connection.write(
          ObservationQueries.reject,
          observations.rejections.map { $0.rejection.values(in: $0.space) })
        for unit in ActivityUnit.allCases {
          try connection.write(
            ObservationQueries.count,
            observations.activity.map { $0.count.values(in: $0.space, unit) })
        }
        for space in observations.spaces {
          try connection.forget(in: space, now: now)
        }
      }
    }
  }
}

extension PlainConnection {
  fileprivate func write(_ statement: PlainStatement, _ lists: [[PlainValue]]) throws {
    if !lists.isEmpty { try perform(lists.map { .one(statement, $0) }) }
  }

  /// Deletes the oldest observations of a space beyond the limit.
  fileprivate func forget(in space: Int64, now: Int64) throws {
    try run(
      ObservationQueries.forgetSightings,
      [.integer(space), .integer(Int64(ObservationQueries.sightingsKept))])
    try run(
      ObservationQueries.forgetRejections, [.integer(space), .integer(Int64(Rejection.keptCount))])
    for unit in ActivityUnit.allCases {
      try run(
        ObservationQueries.forgetActivity,
        [
          .integer(space), .integer(unit.milliseconds),
          .integer(now - unit.keptMilliseconds),
        ])
    }
  }
}

private enum ObservationQueries {
  /// Devices of a space whose last contact is kept. Anyone who may read can invent devices.
  static let sightingsKept = 10_000

  static let see = PlainStatement(
    "observe_device",
    """
    INSERT INTO device_sightings(space, device, seen_at, reached, client, principal)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT(space, device) DO UPDATE SET seen_at = excluded.seen_at,
      reached = coalesce(excluded.reached, device_sightings.reached),
      client = coalesce(excluded.client, device_sightings.client), principal = excluded.principal
    WHERE excluded.seen_at >= device_sightings.seen_at
    """)

  static let reject = PlainStatement(
    "observe_rejection",
    """
    INSERT INTO rejections(space, subject, first_at, last_at, times, code, detail, principal,
      device, tbl, record) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT(space, subject) DO UPDATE SET last_at = excluded.last_at,
      times = rejections.times + excluded.times, code = excluded.code, detail = excluded.detail
    """)

  static let count = PlainStatement(
    "observe_activity",
    """
    INSERT INTO space_activity(space, unit, at, operations, conflicts, rejected)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT(space, unit, at) DO UPDATE SET
      operations = space_activity.operations + excluded.operations,
      conflicts = space_activity.conflicts + excluded.conflicts,
      rejected = space_activity.rejected + excluded.rejected
    """)

  static let forgetSightings = PlainStatement(
    "forget_sightings",
    """
    DELETE FROM device_sightings WHERE space = $1 AND seen_at < (
      SELECT seen_at FROM device_sightings WHERE space = $1
      ORDER BY seen_at DESC LIMIT 1 OFFSET $2)
    """)

  static let forgetRejections = PlainStatement(
    "forget_rejections",
    """
    DELETE FROM rejections WHERE space = $1 AND (last_at, subject) <= (
      SELECT last_at, subject FROM rejections WHERE space = $1
      ORDER BY last_at DESC, subject DESC LIMIT 1 OFFSET $2)
    """)

  static let forgetActivity = PlainStatement(
    "forget_activity", "DELETE FROM space_activity WHERE space = $1 AND unit = $2 AND at < $3")
}

extension DeviceSighting {
  fileprivate var values: [PlainValue] {
    [
      .integer(space), .text(device.description), .integer(at), .integer(reached),
      .text(client), .text(principal.id),
    ]
  }
}

extension Rejection {
  fileprivate func values(in space: Int64) -> [PlainValue] {
    [
      .integer(space), .text(subject), .integer(firstAt), .integer(lastAt), .integer(times),
      .text(code), .text(detail), .text(principal), .text(device?.description),
      .text(key?.table.text), .text(key?.record.text),
    ]
  }
}

extension ActivityCount {
  fileprivate func values(in space: Int64, _ unit: ActivityUnit) -> [PlainValue] {
    [
      .integer(space), .integer(unit.milliseconds), .integer(unit.start(of: at)),
      .integer(operations), .integer(conflicts), .integer(rejected),
    ]
  }
}

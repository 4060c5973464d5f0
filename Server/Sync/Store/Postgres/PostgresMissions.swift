import FerryPostgres
import FerryProtocol

/// The missions published in one space, and their readable content.
struct PostgresMissions {
  let space: Int64
  let now: Int64
  /// For the audit log.
  var mark: AuditMark?

  private static let record = PostgresStatement(
    "mission_record",
    """
    SELECT coalesce((SELECT version FROM missions WHERE space = $1 AND mission = $2), 0),
      (SELECT state FROM records
        WHERE space = $1 AND tbl = '\(MissionRecord.table)' AND record = $3)
    """)

  func mission(_ id: MissionID, on connection: PostgresConnection) throws -> StoredMission? {
    let (last, state) = try stored(id, on: connection)
    return last == 0
      ? nil : StoredMission(lastVersion: last, record: MissionRecord(id, stored: state))
  }

  private func stored(
    _ id: MissionID, on connection: PostgresConnection
  ) throws -> (last: Int64, state: RecordState?) {
    var parameters: PostgresParameters = [.int8(space), .text(id.value)]
    parameters.append(record: Name(id.value))
    let row = try connection.query(Self.record, parameters)[0]
    return (try row.int8(0), row.isNull(1) ? nil : try row.bytes(1, Self.state))
  }

  private static func state(_ bytes: UnsafeRawBufferPointer) throws -> RecordState {
    try RecordState(stored: bytes, limits: .stored)
  }

  /// Returns the number of missions in force, up to the limit.
  private func count(on connection: PostgresConnection) throws -> Int {
    try connection.rows(
      MissionQueries.count, [.integer(space), .integer(Int64(MissionChange.countMax))]
    ) { Int(try $0.integer(0)) }[0]
  }

  // MARK: Changes

  private static let version = PostgresStatement(
    "mission_version",
    """
    INSERT INTO missions(space, mission, version) VALUES ($1, $2, $3)
    ON CONFLICT (space, mission) DO UPDATE SET version = excluded.version
    """)

  private static let end = PostgresStatement(
    "mission_end",
    "UPDATE mission_blobs SET ended = $3 WHERE space = $1 AND mission = $2 AND ended IS NULL")

  private static let forget = PostgresStatement(
    "mission_forget", "DELETE FROM mission_blobs WHERE space = $1 AND mission = $2")

  /// Publishes a record. Returns the record in force, and the head if it moved.
  func publish(
    _ record: MissionRecord, _ blobs: [MissionBlob], random: UInt64, timelines: OwnTimelines,
    on connection: PostgresConnection
  ) throws -> (head: SequenceNumber?, answer: Result<MissionRecord, Problem>) {
    let (effects, answer) = try connection.transaction { connection in
      let locked = try PostgresTimelines(space: space, own: timelines).lock(on: connection)
      let (last, state) = try stored(record.id, on: connection)
      let decision = try MissionChange.publish(
        record, last: last, stored: state, count: try count(on: connection), in: locked, now: now,
        random: random)
      guard case .success(let change) = decision, !change.effects.isEmpty else {
        return (IngestEffects?.none, decision.map(\.record))
      }
      let mission = PostgresValue.text(record.id.value)
      _ = try connection.pipeline { pipeline in
        PostgresIngestWrites(space: space, now: now).add(change.effects, to: &pipeline)
        pipeline.add(Self.version, [.int8(space), mission, .int8(record.version)])
        pipeline.add(Self.end, [.int8(space), mission, .int8(now)])
        add(blobs, of: record.id.value, ended: nil, to: &pipeline)
        PostgresAudit.append(
          mark, .missionPublished, of: space, "\(record.id) version \(record.version)",
          to: &pipeline)
        pipeline.commit()
      }
      return (change.effects, .success(change.record))
    }
    if let effects { timelines.update(effects.space, of: space) }
    return (effects?.space.head, answer)
  }

  /// Retracts a mission. Returns the head if it moved.
  func retract(
    _ id: MissionID, random: UInt64, timelines: OwnTimelines, on connection: PostgresConnection
  ) throws -> SequenceNumber? {
    let effects = try connection.transaction { connection in
      let locked = try PostgresTimelines(space: space, own: timelines).lock(on: connection)
      let (_, state) = try stored(id, on: connection)
      let effects = MissionChange.retract(id, stored: state, in: locked, now: now, random: random)
      _ = try connection.pipeline { pipeline in
        if !effects.isEmpty {
          PostgresIngestWrites(space: space, now: now).add(effects, to: &pipeline)
          PostgresAudit.append(mark, .missionRetracted, of: space, id.value, to: &pipeline)
        }
        pipeline.add(Self.forget, [.int8(space), .text(id.value)])
        for statement in BundleReports.forget {
          pipeline.add(
            PostgresStatement(statement),
            PostgresParameters([PlainValue.integer(space), .text(id.value)]))
        }
        pipeline.commit()
      }
      return effects
    }
    timelines.update(effects.space, of: space)
    return effects.isEmpty ? nil : effects.space.head
  }

  /// Changes a published version of a bundle. Returns the record in force, and the head if it
  /// moved.
  func change(
    _ id: BundleID, by change: BundleChange, random: UInt64, timelines: OwnTimelines,
    on connection: PostgresConnection
  ) throws -> (head: SequenceNumber?, answer: Result<MissionRecord, Problem>) {
    let (effects, answer) = try connection.transaction { connection in
      let locked = try PostgresTimelines(space: space, own: timelines).lock(on: connection)
      let (_, state) = try stored(id.mission, on: connection)
      let decision = MissionChange.change(
        id, by: change, stored: state, in: locked, now: now, random: random)
      guard case .success(let made) = decision, !made.effects.isEmpty else {
        return (IngestEffects?.none, decision.map(\.record))
      }
      _ = try connection.pipeline { pipeline in
        PostgresIngestWrites(space: space, now: now).add(made.effects, to: &pipeline)
        PostgresAudit.append(
          mark, change.action, of: space, change.detail(of: id), to: &pipeline)
        pipeline.commit()
      }
      return (made.effects, .success(made.record))
    }
    if let effects { timelines.update(effects.space, of: space) }
    return (effects?.space.head, answer)
  }

  // MARK: Content

  private static let blobs = PostgresStatement(
    "mission_blobs_save",
    """
    INSERT INTO mission_blobs(space, mission, sha256, size, ended)
    SELECT s.id, $2, new.sha256, new.size, $5
    FROM spaces AS s CROSS JOIN unnest($3::bytea[], $4::bigint[]) AS new(sha256, size)
    WHERE s.id = $1
    ON CONFLICT (space, mission, sha256) DO UPDATE SET ended = excluded.ended
    """)

  private func add(
    _ blobs: [MissionBlob], of mission: String, ended: Int64?,
    to pipeline: inout PostgresPipeline
  ) {
    var sizes = PostgresArray<Int64>(reserving: blobs.count, valueBytes: blobs.count * 8)
    for blob in blobs { sizes.append(blob.size) }
    pipeline.add(
      Self.blobs,
      [
        .int8(space), .text(mission), .array(Self.array(blobs.map(\.hash))), .array(sizes),
        .int8(ended),
      ])
  }

  func storeUpload(_ blob: MissionBlob, on connection: PostgresConnection) throws {
    _ = try connection.pipeline { add([blob], of: "", ended: now, to: &$0) }
  }

  private static let held = PostgresStatement(
    "mission_blobs_held",
    """
    SELECT wanted.sha256, found.size FROM unnest($2::bytea[]) AS wanted(sha256)
    JOIN LATERAL (
      SELECT b.size FROM mission_blobs AS b
      WHERE b.sha256 = wanted.sha256 AND b.space = $1 LIMIT 1
    ) AS found ON true ORDER BY wanted.sha256
    """)

  func held(
    among hashes: [ContentHash], on connection: PostgresConnection
  ) throws -> [MissionBlob] {
    try connection.query(Self.held, [.int8(space), .array(Self.array(hashes))]).compactMap { row in
      let size = try row.int8(1)
      return ContentHash(try row.bytes(0)).map { MissionBlob(hash: $0, size: size) }
    }
  }

  private static func array(_ hashes: [ContentHash]) -> PostgresArray<[UInt8]> {
    var array = PostgresArray<[UInt8]>(reserving: hashes.count, valueBytes: hashes.count * 32)
    for hash in hashes { array.append(bytes: hash.bytes) }
    return array
  }

  // MARK: Across spaces

  private static let endBlobs = PostgresStatement(
    "mission_blobs_end", "DELETE FROM mission_blobs WHERE ended < $1")

  static func endBlobs(before moment: Int64, on connection: PostgresConnection) throws -> Int {
    try connection.query(endBlobs, [.int8(moment)]).affected
  }

  private static let needed = PostgresStatement(
    "mission_blobs_needed",
    """
    SELECT wanted.sha256 FROM unnest($1::bytea[]) AS wanted(sha256)
    JOIN LATERAL (
      SELECT 1 FROM mission_blobs AS b WHERE b.sha256 = wanted.sha256 LIMIT 1
    ) AS found ON true ORDER BY wanted.sha256
    """)

  /// The same for Citus. It reads the rows of all spaces with the content.
  private static let neededAnywhere = PostgresStatement(
    "mission_blobs_needed_anywhere",
    "SELECT DISTINCT sha256 FROM mission_blobs WHERE sha256 = ANY($1) ORDER BY sha256")

  static func needed(
    among hashes: [ContentHash], isDistributed: Bool, on connection: PostgresConnection
  ) throws -> [ContentHash] {
    try connection.query(isDistributed ? neededAnywhere : needed, [.array(array(hashes))])
      .compactMap { ContentHash(try $0.bytes(0)) }
  }
}

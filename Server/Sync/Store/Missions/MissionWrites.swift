import FerryProtocol

// Missions published, changed and retracted, in both stores.
extension SyncStore {
  /// Returns a mission; `nil` if no such mission was ever published.
  package func mission(
    _ id: MissionID, in space: Int64
  ) async throws(StoreError) -> StoredMission? {
    try await plain(.reading) { connection in
      let (last, state) = try connection.mission(id, in: space)
      guard last > 0 else { return nil }
      return StoredMission(lastVersion: last, record: MissionRecord(id, stored: state))
    }
  }

  /// Puts a mission in force as an operation of the server, and lets the space read its content.
  /// Returns the record in force; an equal record changes nothing. Any version but the next one is
  /// refused with ``ProblemCode/missionConflict``.
  ///
  /// - Parameters:
  ///   - blobs: The manifest's document and the content of hosted items, each once.
  ///   - now: The wall clock, milliseconds since 1970.
  package func publishMission(
    _ record: MissionRecord, blobs: [MissionBlob], in space: Int64, now: Int64,
    by mark: AuditMark? = nil
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    try await change(space, now: now) { try $0.publish(record, blobs, by: mark) }
  }

  /// Changes the rollout of a published bundle as an operation of the server's. Returns the record
  /// in force; the same change again writes nothing. ``ProblemCode/notFound`` if there is no such
  /// version, and ``ProblemCode/missionConflict`` if it was withdrawn.
  package func changeBundle(
    _ id: BundleID, _ change: BundleChange, in space: Int64, now: Int64, by mark: AuditMark? = nil
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    try await self.change(space, now: now) { try $0.apply(change, to: id, by: mark) }
  }

  /// Deletes a mission's record, and the reports about it. Returns whether it was in force.
  package func retractMission(
    _ id: MissionID, in space: Int64, now: Int64, by mark: AuditMark? = nil
  ) async throws(StoreError) -> Bool {
    // There may be any number of these rows. No device needs them, so they go before the mission.
    try await inSlices { connection in
      try connection.lock(space)
      return try BundleReports(space: space).forget(
        id, upTo: connection.sliceRows, on: connection)
    }
    var place: [UInt8]? = []
    while let after = place {
      place = try await plain(.writing) { connection in
        try connection.together { try connection.endFormerBlobs(of: id, in: space, after: after) }
      }
    }
    return try await change(space, now: now) { try $0.retract(id, by: mark) }
  }
}

extension SpaceChange {
  /// Publishes a record. Returns the record in force.
  func publish(
    _ record: MissionRecord, _ blobs: [MissionBlob], by mark: AuditMark?
  ) throws -> Result<MissionRecord, Problem> {
    let (last, stored) = try connection.mission(record.id, in: space)
    let decision = try MissionChange.publish(
      record, last: last, stored: stored, count: try connection.missionCount(in: space),
      in: state, now: now, random: random)
    guard case .success(let made) = decision, !made.effects.isEmpty else {
      return decision.map(\.record)
    }
    try save(made.effects)
    let mission = record.id.value
    try connection.run(
      MissionStatements.version, [.integer(space), .text(mission), .integer(record.version)])
    try connection.save(blobs, of: mission, in: space, ended: nil)
    try connection.endBlobs(of: mission, besides: Set(blobs.map(\.hash)), in: space, now: now)
    try connection.append(
      mark, .missionPublished, of: space, "\(record.id) version \(record.version)")
    return .success(made.record)
  }

  /// Changes a published version of a bundle. Returns the record in force.
  fileprivate func apply(
    _ change: BundleChange, to id: BundleID, by mark: AuditMark?
  ) throws -> Result<MissionRecord, Problem> {
    let (_, stored) = try connection.mission(id.mission, in: space)
    let decision = MissionChange.change(
      id, by: change, stored: stored, in: state, now: now, random: random)
    guard case .success(let made) = decision, !made.effects.isEmpty else {
      return decision.map(\.record)
    }
    try save(made.effects)
    try connection.append(mark, change.action, of: space, change.detail(of: id))
    return .success(made.record)
  }

  /// Retracts a mission. Returns whether it was in force.
  func retract(_ id: MissionID, by mark: AuditMark?) throws -> Bool {
    let (_, stored) = try connection.mission(id, in: space)
    let effects = MissionChange.retract(id, stored: stored, in: state, now: now, random: random)
    try save(effects)
    for statement in [MissionStatements.forgetBlobs] + BundleReports.forget {
      try connection.run(statement, [.integer(space), .text(id.value)])
    }
    if effects.isEmpty { return false }
    try connection.append(mark, .missionRetracted, of: space, id.value)
    return true
  }
}

extension PlainConnection {
  /// Returns the last published version of a mission, 0 if there is none, and the record of the
  /// catalogue.
  fileprivate func mission(
    _ id: MissionID, in space: Int64
  ) throws -> (last: Int64, state: RecordState?) {
    let key = MissionChange.key(id)
    let found = try rows(
      MissionStatements.record,
      [.integer(space), .text(id.value), .text(key.table.text), .record(key.record)]
    ) { row in
      (last: try row.integer(0), state: row.isNull(1) ? nil : try row.recordState(1))
    }
    return found.first ?? (0, nil)
  }

  /// Returns the number of missions in force, up to the limit.
  fileprivate func missionCount(in space: Int64) throws -> Int {
    let rows = try rows(
      MissionQueries.count, [.integer(space), .integer(Int64(MissionChange.countMax))]
    ) { Int(try $0.integer(0)) }
    return rows.first ?? 0
  }
}

private enum MissionStatements {
  static let record = PlainStatement(
    "mission_record",
    """
    SELECT coalesce((SELECT version FROM missions WHERE space = $1 AND mission = $2), 0),
      (SELECT state FROM records WHERE space = $1 AND tbl = $3 AND record = $4)
    """)
  static let version = PlainStatement(
    "mission_version",
    """
    INSERT INTO missions(space, mission, version) VALUES ($1, $2, $3)
    ON CONFLICT (space, mission) DO UPDATE SET version = excluded.version
    """)
  static let forgetBlobs = PlainStatement(
    "mission_forget", "DELETE FROM mission_blobs WHERE space = $1 AND mission = $2")
}

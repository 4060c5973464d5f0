import FerryProtocol
import FerrySQLite

extension SQLiteStoreFile {
  /// Applies, answers or buffers packets durably, unless the matches of their batch operations are
  /// missing. Large ones are written in slices.
  func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, _ matches: BatchMatches,
    room: IngestRoom = .sliced
  ) throws -> IngestAttempt {
    try ingestAtOnce(packets, into: space, now: now, matches, room: room)
      ?? ingestInSlices(packets, into: space, now: now, matches, room: room)
  }

  /// Does the same in one short transaction. Returns `nil`, and changes nothing, if this would take
  /// more than a slice.
  func ingestAtOnce(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, _ matches: BatchMatches,
    room: IngestRoom
  ) throws -> IngestAttempt? {
    guard slice.admits(packets, matches) else { return nil }
    let room = IngestRoom(
      bytes: min(room.bytes, slice.bytes),
      allowsSlices: room.allowsSlices || room.bytes > slice.bytes)
    do {
      return try change(space) {
        var context = try context(for: packets, in: space, now: now, room)
        let before = context.space.head
        try bound(packets, in: context)
        let effects = try decide(
          packets, in: &context, matches, loader(in: space, now: now, room))
        try save(effects, in: space, now: now)
        return .done(before: before, effects.batch)
      }
    } catch let wanted as BatchesToMatch {
      return .needsMatches(wanted)
    } catch is TooLargeForSlice {
      return nil
    } catch is SpaceUnsettled {
      return nil
    }
  }

  private func decide(
    _ packets: [IncomingPacket], in context: inout IngestContext, _ matches: BatchMatches,
    _ loader: IngestLoader
  ) throws -> IngestEffects {
    var rounds = 1
    return try Ingest.decide(packets, in: &context) { need, context in
      if case .bodies(let keys) = need, !slice.admits(keys, of: context.buffered) {
        throw TooLargeForSlice()
      }
      if case .nothing = need { rounds += 1 }
      try loader.load(need, matches, for: packets.count, into: &context)
      try bound(packets, in: context, rounds: rounds)
    }
  }

  /// Throws if a decision about packets, and about the loaded buffered ones, takes more than a
  /// slice.
  private func bound(
    _ packets: [IncomingPacket], in context: IngestContext, rounds: Int = 1
  ) throws {
    guard !context.isSliced, slice.admits(context.bodies.values),
      slice.admits(packets, in: context, rounds: rounds)
    else { throw TooLargeForSlice() }
  }

  // MARK: Loading

  func loader(in space: Int64, now: Int64, _ room: IngestRoom) -> IngestLoader {
    IngestLoader(
      connection: self, space: space, now: now, limits: limits, quotas: quotas, room: room,
      schemas: schemas, timelines: timelines)
  }

  /// Returns the state of a space without an unfinished large packet.
  ///
  /// - Parameter staging: The caller's own rows behind the head, if there are any.
  /// - Throws: `SpaceUnsettled` if the space has other rows behind the head, or replaced ones.
  func spaceState(_ space: Int64, staging: StagingState? = nil) throws -> SpaceState {
    guard try isSettled(space, staging: staging) else { throw SpaceUnsettled() }
    return try lockedState(of: space, timelines)
  }

  /// Loads everything needed at first for a decision about packets.
  func context(
    for incoming: [IncomingPacket], in space: Int64, now: Int64, _ room: IngestRoom
  ) throws -> IngestContext {
    guard try isSettled(space) else { throw SpaceUnsettled() }
    return try loader(in: space, now: now, room).context(
      for: incoming, IngestLookUps(incoming.map(\.packet), isThorough: true))
  }

  /// Loads the part of a context with neither records nor the history.
  ///
  /// - Parameter staging: The caller's own rows behind the head, if there are any.
  func frame(
    of incoming: [IncomingPacket], in space: Int64, now: Int64, _ room: IngestRoom,
    staging: StagingState? = nil
  ) throws -> IngestContext {
    guard try isSettled(space, staging: staging) else { throw SpaceUnsettled() }
    return try loader(in: space, now: now, room).frame(of: incoming)
  }
}

/// The rows written by packets.
extension SQLiteStoreFile {
  func save(_ effects: IngestEffects, in space: Int64, now: Int64) throws {
    guard !effects.isEmpty else { return }
    try save(slice: effects, in: space)
    try saveFrame(of: effects, in: space, now: now)
  }

  /// Writes everything but the rows of a slice.
  func saveFrame(of effects: IngestEffects, in space: Int64, now: Int64) throws {
    try perform(effects.frame(in: space, now: now))
    unsettled = effects.space
  }

  /// Writes the operations, records and notices.
  private func save(slice effects: IngestEffects, in space: Int64) throws {
    try saveOperations(effects.operations, in: space)
    try saveRecords(effects.records, in: space)
    try saveNotices(effects.notices, in: space)
  }

  func saveOperations(
    _ operations: [IngestEffects.OperationRow], in space: Int64
  ) throws {
    let insert = try connection.statement(
      """
      INSERT INTO operations(space, id, sequence, device, tbl, record, kind, time, base, data,
        times, outcome, history_hash, marks, former, ordinal)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    for row in operations { try insert.run(space, row) }
  }

  private func saveRecords(_ records: [IngestEffects.RecordRow], in space: Int64) throws {
    let update = try connection.statement(
      """
      UPDATE record_rows SET sequence = ?4, whole_below = ?5, state = ?6, dead = ?7
      WHERE space = ?1 AND tbl = ?2 AND record = ?3
      """)
    let insert = try recordInsertion()
    for row in records {
      if !row.isNew, try update.run(space, row) > 0 { continue }
      try insert.run(space, row)
    }
  }

  /// Returns the statement that writes a first row of a record, or a row beside the present one.
  func recordInsertion() throws -> SQLiteStatement {
    try connection.statement(
      """
      INSERT INTO record_rows(space, tbl, record, sequence, whole_below, state, dead)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      """)
  }

  func saveNotices(_ rows: [IngestEffects.NoticeRow], in space: Int64) throws {
    try perform(IngestEffects.writes(rows, in: space))
  }

  func saveColumns(_ rows: some Sequence<IngestEffects.ColumnRow>, in space: Int64) throws {
    try perform(IngestEffects.writes(rows, in: space))
  }
}

/// Binds the columns of `operations` after the space: most rows written by a server.
extension IngestEffects.OperationRow: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    parameters.append(id)
    parameters.append(sequence)
    parameters.append(device)
    parameters.append(key.table)
    parameters.append(StoredRecordName(key.record))
    parameters.append(Int64(kind.storedCode))
    parameters.append(time.rawValue)
    parameters.append(base)
    parameters.append(data.map(SQLiteText.init))
    parameters.append(times.map(SQLiteText.init))
    parameters.append(outcome.map(SQLiteText.init))
    parameters.append(historyHash)
    parameters.append(marks.map(SQLiteText.init))
    parameters.append(former.map(SQLiteText.init))
    parameters.append(Int64(ordinal))
  }
}

/// Binds the columns of `records` after the space.
extension IngestEffects.RecordRow: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    parameters.append(key.table)
    parameters.append(StoredRecordName(key.record))
    parameters.append(sequence)
    parameters.append(wholeBelow)
    parameters.append(state)
    parameters.append(isDead)
  }
}

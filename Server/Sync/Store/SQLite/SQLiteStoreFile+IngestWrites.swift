import FerryProtocol
import FerrySQLite
import FerryStoredValues

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
        times, outcome, history_hash, marks, former)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
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

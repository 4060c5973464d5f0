import FerryProtocol
import FerrySQLite

/// The conflicts of a replica's file: `ferry_conflicts` (SPEC.md §6, §15).
///
/// Each row is a lost value, or a question for the user. The device's own identifiers show the
/// sides written here.
struct ConflictTable {
  let connection: SQLiteConnection
  let limits: Limits

  // MARK: Counting

  private static let isOpen = "question = 1 AND resolved IS NULL"

  func count() throws -> Int { try connection.count("SELECT count(*) FROM ferry_conflicts") }

  /// Returns the number of open questions.
  func openCount() throws -> Int {
    try connection.count("SELECT count(*) FROM ferry_conflicts WHERE \(Self.isOpen)")
  }

  /// Returns true if any question for the user is open.
  func hasOpenQuestions() throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_conflicts WHERE \(Self.isOpen) LIMIT 1")
  }

  /// Returns true if any value of a record has lost.
  func concern(_ key: RecordKey) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_conflicts WHERE record = ? AND tbl = ? LIMIT 1", key.record, key.table)
  }

  /// Returns true if an operation has a conflict about a record.
  func has(anyOf operation: OperationID, on key: RecordKey) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_conflicts WHERE operation = ? AND record = ? AND tbl = ? LIMIT 1",
      operation, key.record, key.table)
  }

  /// Returns true if a value is listed as lost by an operation by any author.
  func has(_ conflict: Conflict, of operation: OperationID, on key: RecordKey) throws -> Bool {
    var lost = JSONWriter()
    lost.value(conflict.lost)
    return try connection.exists(
      """
      SELECT 1 FROM ferry_conflicts
      WHERE operation = ? AND record = ? AND tbl = ? AND col IS ? AND lost = ? LIMIT 1
      """, operation, key.record, key.table, conflict.column, SQLiteText(lost.finish()))
  }

  // MARK: Reading

  /// Returns conflicts of some tables, newest first. Conflicts of other tables do not count for the
  /// limit.
  func newest(
    _ limit: Int, openOnly: Bool = false, own: OwnNames,
    in isIncluded: (Name) -> Bool = { _ in true }
  ) throws -> [KeptConflict] {
    let condition = openOnly ? "WHERE \(Self.isOpen)" : ""
    let rows = try connection.statement("\(Self.selection) \(condition) ORDER BY seq DESC")
    defer { rows.reset() }
    var found: [KeptConflict] = []
    while found.count < limit, try rows.step() {
      if isIncluded(rows.name(3)) { found.append(try conflict(rows, own)) }
    }
    return found
  }

  /// Returns conflicts stored after the given one, oldest first.
  func noted(after number: Int64, own: OwnNames) throws -> [KeptConflict] {
    try connection.rows("\(Self.selection) WHERE seq > ? ORDER BY seq", number) {
      try conflict($0, own)
    }
  }

  /// Returns the conflict with this number.
  func conflict(_ number: Int64, own: OwnNames) throws -> KeptConflict? {
    try connection.first("\(Self.selection) WHERE seq = ?", number) { try conflict($0, own) }
  }

  /// Returns the open questions, oldest first.
  func openQuestions(own: OwnNames) throws -> [KeptConflict] {
    try connection.rows("\(Self.selection) WHERE \(Self.isOpen) ORDER BY seq") {
      try conflict($0, own)
    }
  }

  /// Returns the open questions on a record.
  func openQuestions(on key: RecordKey, own: OwnNames) throws -> [KeptConflict] {
    try connection.rows(
      "\(Self.selection) WHERE record = ? AND tbl = ? AND \(Self.isOpen)", key.record, key.table
    ) { try conflict($0, own) }
  }

  /// Returns the values of a record lost together with a conflict's row.
  func lostValues(with kept: KeptConflict, own: OwnNames) throws -> [KeptConflict] {
    try connection.rows(
      "\(Self.selection) WHERE operation = ? AND record = ? AND tbl = ? AND col IS NOT NULL",
      kept.operation, kept.key.record, kept.key.table
    ) { try conflict($0, own) }
  }

  private static let selection = """
    SELECT seq, at, operation, tbl, record, col, lost, loser_time, loser, winner_time, winner,
      question, resolved, holder FROM ferry_conflicts
    """

  /// Reads a row of the selection.
  private func conflict(_ row: SQLiteStatement, _ names: OwnNames) throws -> KeptConflict {
    func id(_ index: Int32) -> UniqueID { row.uniqueID(index) ?? UniqueID(high: 0, low: 0) }
    func stamp(_ time: Int32, _ device: Int32) -> Stamp {
      Stamp(
        time: HybridTimestamp(rawValue: UInt64(bitPattern: row.int64(time))),
        device: DeviceID(id(device)))
    }
    var lost = JSONReader(row.textBytes(6))
    let (loser, winner) = (stamp(7, 8), stamp(9, 10))
    return KeptConflict(
      number: row.int64(0), noticedAt: row.int64(1), operation: OperationID(id(2)),
      key: RecordKey(table: row.name(3), record: row.name(4)),
      conflict: Conflict(
        column: row.optionalName(5), lost: try lost.value(limits: limits), loser: loser,
        winner: winner, isQuestion: row.int64(11) != 0),
      isLosersOwn: names.wrote(loser), isWinnersOwn: names.wrote(winner),
      resolvedAt: row.optionalInt64(12), holder: row.optionalName(13))
  }

  // MARK: Writing

  /// Stores a conflict; ignores a known one. Reopens a question about a unique value.
  ///
  /// - Parameters:
  ///   - now: the wall clock in milliseconds.
  ///   - holder: the local record with the unique value.
  func store(
    _ conflict: Conflict, of operation: OperationID, on key: RecordKey,
    at sequence: SequenceNumber?, now: Int64, holder: Name? = nil
  ) throws {
    var lost = JSONWriter()
    lost.value(conflict.lost)
    try connection.run(
      """
      INSERT INTO ferry_conflicts(at, operation, tbl, record, col, lost, loser_time, loser,
        winner_time, winner, sequence, question, holder)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT(operation, record, tbl, ifnull(col, ''), loser, loser_time)
        DO UPDATE SET resolved = NULL, holder = excluded.holder
        WHERE holder IS NULL AND excluded.holder IS NOT NULL
      """, now, operation, key.table, key.record, conflict.column, SQLiteText(lost.finish()),
      conflict.loser.time.rawValue, conflict.loser.device, conflict.winner.time.rawValue,
      conflict.winner.device, sequence, conflict.isQuestion, holder)
  }

  /// Closes one question without an answer of the user. It opens again if a record waits again for a
  /// unique value.
  func resolve(_ question: KeptConflict, now: Int64) throws {
    try connection.run(
      "UPDATE ferry_conflicts SET resolved = ?, holder = NULL WHERE seq = ?", now, question.number)
  }

  /// Makes a question an ordinary conflict.
  func withdraw(_ question: KeptConflict) throws {
    try connection.run(
      "UPDATE ferry_conflicts SET question = 0 WHERE seq = ?", question.number)
  }

  /// Marks a conflict as answered by the user.
  func markResolved(_ kept: KeptConflict, now: Int64) throws {
    // The question about a record's existence includes the lost values.
    try connection.run(
      """
      UPDATE ferry_conflicts SET resolved = ?1 WHERE record = ?2 AND tbl = ?3 AND resolved IS NULL
        AND (seq = ?4 OR operation = ?5 AND ?6)
      """, now, kept.key.record, kept.key.table, kept.number, kept.operation,
      kept.conflict.column == nil)
  }
}

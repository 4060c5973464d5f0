import FerryProtocol
import FerrySQLite

/// Rejected operations, with all that depended on them: `ferry_quarantine`, a view of
/// `ferry_operations` and `ferry_failures` (SPEC.md §12).
///
/// An entry has the operations removed from the queue because of one rejection.
struct QuarantineTable {
  let connection: SQLiteConnection
  let queue: OperationTable

  // MARK: Counting

  /// Returns the number of operations.
  func count() throws -> Int { try connection.count("SELECT count(*) FROM ferry_quarantine") }

  func isEmpty() throws -> Bool { try !connection.exists("SELECT 1 FROM ferry_quarantine") }

  // MARK: Reading

  /// Returns entries, oldest first.
  func oldest(_ limit: Int) throws -> [QuarantineEntry] {
    try connection.rows(
      "SELECT DISTINCT entry FROM ferry_quarantine ORDER BY entry LIMIT ?", limit
    ) { $0.int64(0) }.compactMap { try entry($0) }
  }

  /// Returns an entry; `nil` if no entry has this number.
  func entry(_ number: Int64) throws -> QuarantineEntry? {
    var entry = QuarantineEntry(number: number)
    try connection.forEach(
      """
      SELECT seq, id, grp, 0, tbl, record, kind, data, 0, was, marks, reason, code, detail,
        holder, at
      FROM ferry_quarantine WHERE entry = ? ORDER BY seq
      """, number
    ) { row in
      entry.operations.append(try queue.pending(row).operation)
      guard let code = row.optionalText(12) else { return }
      entry.code = RefusalCode(rawValue: code)
      entry.detail = row.text(13)
      entry.holder = row.optionalName(14)
      entry.refusedAt = row.int64(15)
      entry.refused.append(OperationID(row.uniqueID(1) ?? UniqueID(high: 0, low: 0)))
    }
    return entry.operations.isEmpty ? nil : entry
  }

  /// Returns the place of an operation of an entry.
  func order(of operation: OperationID, in entry: Int64) throws -> Int64? {
    try connection.first(
      "SELECT seq FROM ferry_quarantine WHERE entry = ? AND id = ?", entry, operation
    ) { $0.int64(0) }
  }

  /// Returns entries of upload-only tables for a table and a record; `nil` for all.
  func uploads(_ table: Name?, _ record: Name?) throws -> [Int64] {
    try connection.rows(
      """
      SELECT DISTINCT entry FROM ferry_quarantine
      WHERE \(FailedUploads.isRejected) AND NOT \(TrackedTables.isTwoWay)
        AND \(FailedUploads.matches)
      ORDER BY entry
      """, table, record
    ) { $0.int64(0) }
  }

  /// Returns the rejected entries with all operations on some tables. Another device would overrule
  /// an overruled write again.
  func entries(within tables: Set<Name>) throws -> [Int64] {
    let entries = try connection.rows(
      "SELECT DISTINCT entry, tbl FROM ferry_quarantine WHERE ifnull(code, '') <> ?",
      RefusalCode.overruled.rawValue
    ) { (entry: $0.int64(0), table: $0.name(1)) }
    let others = Set(entries.filter { !tables.contains($0.table) }.map(\.entry))
    return Set(entries.map(\.entry)).subtracting(others).sorted()
  }

  // MARK: Writing

  /// Moves operations to a new entry.
  ///
  /// - Parameters:
  ///   - orders: their places.
  ///   - now: the wall clock in milliseconds.
  func add(_ orders: [Int64], _ refusal: Refusal, now: Int64) throws {
    let entry = try connection.count("SELECT coalesce(max(entry), 0) + 1 FROM ferry_failures")
    // Batches have no record: the identifier tells two batches on one table apart.
    let isRefused = "record = ?3 AND tbl = ?4 AND (kind <> 'batch' OR id = ?9)"
    let note = try connection.statement(
      """
      INSERT INTO ferry_failures(seq, entry, code, detail, holder, at)
      SELECT seq, ?2, iif(\(isRefused), ?5, NULL), iif(\(isRefused), ?6, NULL),
        iif(\(isRefused), ?7, NULL), ?8
      FROM ferry_operations WHERE seq = ?1
      """)
    let move = try connection.statement("UPDATE ferry_operations SET state = 3 WHERE seq = ?")
    for order in orders {
      try note.run(
        order, entry, refusal.record, refusal.table, refusal.code.rawValue, refusal.detail,
        refusal.holder, now, refusal.operation)
      try move.run(order)
    }
  }

  /// Removes an entry with all operations in it. Returns true if it existed.
  @discardableResult
  func remove(_ number: Int64) throws -> Bool {
    try queue.storeNewestOrder()
    try connection.run(
      """
      DELETE FROM ferry_operations
      WHERE state = 3 AND seq IN (SELECT seq FROM ferry_failures WHERE entry = ?)
      """, number)
    return try connection.run("DELETE FROM ferry_failures WHERE entry = ?", number) > 0
  }
}

import FerryProtocol
import SQLite

/// A change that waits for the local schema.
struct KeptChange {
  let change: Change
  /// Why the schema refused it; `nil` when its table or column is not known here.
  let reason: String?

  var isRefused: Bool { reason != nil }
}

/// Changes that the local schema does not know or refuses: nothing that was pulled is lost.
extension ReplicaFile {
  func hasKept() throws -> Bool {
    try connection.statement("SELECT 1 FROM ferry_kept LIMIT 1").first { _ in true } != nil
  }

  /// How many records were refused by the local schema.
  func refusedCount() throws -> Int {
    try count("SELECT count(*) FROM ferry_kept WHERE reason IS NOT NULL")
  }

  func keep(_ change: Change, reason: String?) throws {
    let insert = try connection.statement(
      "INSERT OR REPLACE INTO ferry_kept(tbl, record, sequence, state, reason) VALUES (?, ?, ?, ?, ?)"
    )
    insert.bind(1, change.key.table)
    insert.bind(2, change.key.record)
    insert.bind(3, change.sequence)
    insert.bind(4, text: change.state.encoded())
    insert.bind(5, reason)
    try insert.run()
  }

  func forgetKept(_ key: RecordKey) throws {
    let remove = try connection.statement("DELETE FROM ferry_kept WHERE tbl = ? AND record = ?")
    remove.bind(1, key.table)
    remove.bind(2, key.record)
    try remove.run()
  }

  func keptState(of key: RecordKey) throws -> RecordState? {
    let find = try connection.statement("SELECT state FROM ferry_kept WHERE tbl = ? AND record = ?")
    find.bind(1, key.table)
    find.bind(2, key.record)
    return try find.first { try RecordState(decoding: $0.textBytes(0), limits: limits) }
  }

  /// What is kept for one table, or for all, oldest change first.
  func keptChanges(of table: String?, limit: Int = .max) throws -> [KeptChange] {
    let find = try connection.statement(
      """
      SELECT tbl, record, sequence, state, reason FROM ferry_kept
      WHERE ?1 IS NULL OR tbl = ?1 ORDER BY sequence LIMIT ?2
      """)
    find.bind(1, table)
    find.bind(2, limit)
    return try find.map { row in
      KeptChange(
        change: Change(
          sequence: row.int64(2), key: RecordKey(table: row.text(0), record: row.text(1)),
          state: try RecordState(decoding: row.textBytes(3), limits: limits)),
        reason: row.optionalText(4))
    }
  }

  func count(_ sql: String) throws -> Int {
    Int(try connection.statement(sql).first { $0.int64(0) } ?? 0)
  }
}

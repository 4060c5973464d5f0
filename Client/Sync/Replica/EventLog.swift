import FerrySQLite

/// The log of a space in a replica's file: `ferry_log`. It keeps the newest entries.
struct EventLog {
  let connection: SQLiteConnection

  /// The most entries.
  static let length = 1_000

  /// - Parameter now: the wall clock in milliseconds.
  func append(_ event: String, _ detail: String, now: Int64) throws {
    try connection.run(
      "INSERT INTO ferry_log(at, event, detail) VALUES (?, ?, ?)", now, event, detail)
    try connection.run(
      "DELETE FROM ferry_log WHERE seq <= (SELECT max(seq) FROM ferry_log) - ?", Self.length)
  }

  /// Returns entries, newest first.
  func newest(_ limit: Int) throws -> [LogEntry] {
    try connection.rows("\(Self.selection) ORDER BY seq DESC LIMIT ?", limit, row: Self.entry)
  }

  /// Returns the number of the newest entry; 0 if there is none.
  func newestNumber() throws -> Int64 {
    try connection.first("SELECT coalesce(max(seq), 0) FROM ferry_log") { $0.int64(0) } ?? 0
  }

  /// Returns the entries after a number, oldest first.
  func entries(after number: Int64) throws -> [(number: Int64, entry: LogEntry)] {
    try connection.rows(
      "SELECT at, event, detail, seq FROM ferry_log WHERE seq > ? ORDER BY seq", number
    ) { ($0.int64(3), Self.entry($0)) }
  }

  /// Returns the last entry about a recovery.
  func lastRecovery() throws -> LogEntry? {
    try connection.first(
      """
      \(Self.selection) WHERE event IN ('identity', 'restored', 'replaced')
      ORDER BY seq DESC LIMIT 1
      """, row: Self.entry)
  }

  private static let selection = "SELECT at, event, detail FROM ferry_log"

  private static func entry(_ row: SQLiteStatement) -> LogEntry {
    LogEntry(at: row.int64(0), event: row.text(1), detail: row.text(2))
  }
}

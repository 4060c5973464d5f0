import FerryProtocol
import SQLite

/// Where the cursor was at which time by the server's clock: so that a device can tell whether the
/// authors of what a server lost still keep it.
extension ReplicaFile {
  /// Marks are this far apart at least, milliseconds.
  private static let markDistance: Int64 = 24 * 3_600_000

  /// Notes where the cursor is. Of the marks that are as old as the archive may become, the newest
  /// one is kept.
  func mark(_ applied: SequenceNumber, now: Int64) throws {
    let insert = try connection.statement(
      """
      INSERT INTO ferry_marks(at, applied) SELECT ?1, ?2
      WHERE NOT EXISTS (SELECT 1 FROM ferry_marks WHERE at > ?3)
      """)
    insert.bind(1, now)
    insert.bind(2, applied)
    insert.bind(3, now - Self.markDistance)
    try insert.run()
    guard connection.changes > 0 else { return }
    let trim = try connection.statement(
      "DELETE FROM ferry_marks WHERE at < (SELECT max(at) FROM ferry_marks WHERE at <= ?)")
    trim.bind(1, now - Self.archiveAgeMax)
    try trim.run()
  }

  /// Whether all that lies behind `head` in the history that was lost came later than devices
  /// forget what they have sent, as far as it is known here. The marks stand for the history that
  /// there is from here on.
  func isKeptByAuthors(after head: SequenceNumber, now: Int64) throws -> Bool {
    let find = try connection.statement("SELECT max(applied) FROM ferry_marks WHERE at <= ?")
    find.bind(1, now - Self.archiveAgeMax)
    let old = try find.first { $0.optionalInt64(0) } ?? nil
    let lower = try connection.statement("UPDATE ferry_marks SET applied = min(applied, ?)")
    lower.bind(1, head)
    try lower.run()
    return old ?? 0 <= head
  }
}

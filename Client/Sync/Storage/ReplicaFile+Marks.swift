import FerryProtocol
import SQLite

/// Where the cursor was at which time by the server's clock: so that a device can tell whether the
/// authors of all that a server lost still keep it.
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

  /// Whether all of the history that the marks are of is younger than devices forget what they have
  /// sent, as far as it is known here. There are no marks of it from here on.
  func endMarks(now: Int64) throws -> Bool {
    let find = try connection.statement(
      "SELECT 1 FROM ferry_marks WHERE at <= ? AND applied > 0 LIMIT 1")
    find.bind(1, now - Self.archiveAgeMax)
    let old = try find.first { _ in true }
    try connection.execute("DELETE FROM ferry_marks")
    return old == nil
  }
}

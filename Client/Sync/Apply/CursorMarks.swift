import FerryProtocol
import FerrySQLite

/// Places of the cursor with their times by the server's clock: `ferry_marks`. They show whether
/// the authors of all operations lost by a server still have them.
struct CursorMarks {
  let connection: SQLiteConnection

  /// The least time between marks, in milliseconds.
  private static let distance: Int64 = 24 * 3_600_000

  /// Stores the cursor's place. Of the marks as old as the archive may become, only the newest
  /// stays. Overruled writes up to it are forgotten.
  ///
  /// - Parameter now: the server's clock in milliseconds.
  func add(_ applied: SequenceNumber, now: Int64) throws {
    let made = try connection.run(
      """
      INSERT INTO ferry_marks(at, applied) SELECT ?1, ?2
      WHERE NOT EXISTS (SELECT 1 FROM ferry_marks WHERE at > ?3)
      """, now, applied, now - Self.distance)
    guard made > 0 else { return }
    try connection.run(
      "DELETE FROM ferry_marks WHERE at < (SELECT max(at) FROM ferry_marks WHERE at <= ?)",
      now - PacketChain.archiveAgeMax)
    guard let place = try oldPlace() else { return }
    try connection.run("DELETE FROM ferry_overruled WHERE sequence <= ?", place)
  }

  /// Returns the place of the oldest mark if it is older than the archive may become; `nil`
  /// otherwise.
  func oldPlace() throws -> SequenceNumber? {
    try connection.first(
      """
      SELECT applied FROM ferry_marks
      WHERE at <= (SELECT max(at) FROM ferry_marks) - ? ORDER BY at LIMIT 1
      """, PacketChain.archiveAgeMax
    ) { $0.int64(0) }
  }

  /// Returns true if the whole known history of the marks is younger than the time devices keep
  /// their operations.
  func areYoung(now: Int64) throws -> Bool {
    try !connection.exists(
      "SELECT 1 FROM ferry_marks WHERE at <= ? AND applied > 0 LIMIT 1",
      now - PacketChain.archiveAgeMax)
  }

  func removeAll() throws { try connection.run("DELETE FROM ferry_marks") }
}

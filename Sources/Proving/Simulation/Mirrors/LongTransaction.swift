import FerryConformance
import FerryMirror
import FerryPostgres
import FerryProtocol

/// A transaction of a program that has changed one row, and holds the lock of it for a while.
final class LongTransaction {
  private let connection: PostgresConnection
  /// The identifier in PostgreSQL.
  let transaction: String
  /// The held note.
  let record: String

  /// Begins the transaction on a connection of its own.
  ///
  /// - Returns: `nil` if there is no note.
  init?(_ database: String, schema: String, _ random: inout SeededRandom) throws {
    let connection = try PostgresConnection(url: database, settings: .mirrors)
    try connection.execute(
      "BEGIN; SET LOCAL lock_timeout = '1ms'; SET LOCAL search_path = \(quoted(Name(schema)))")
    let title = Value.text("held \(random.below(100))").sqlLiteral
    let found = try connection.query(
      .once(
        """
        UPDATE notes SET title = \(title) WHERE id = (
          SELECT id FROM notes ORDER BY id OFFSET \(random.below(4)) LIMIT 1)
        RETURNING id, pg_current_xact_id()::text
        """)
    ).first
    guard let found else { return nil }
    (record, transaction) = (try found.text(0), try found.text(1))
    self.connection = connection
  }

  /// Ends the transaction.
  func end(commits: Bool) throws { try connection.execute(commits ? "COMMIT" : "ROLLBACK") }
}

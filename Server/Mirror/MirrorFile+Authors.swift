import FerryPersistence
import FerryProtocol
import FerrySQLite

/// The devices that have changed rows, as the triggers record them.
extension MirrorFile {
  /// Devices known of one table: more of them are rows without a known author.
  private static let authorsMax = 1_000

  /// Returns the devices whose rows a table in PostgreSQL may not have.
  func authors(_ database: Database) throws -> [String] {
    var found: Set<String> = []
    for table in plan.tables {
      let rows = try database.query(
        """
        SELECT DISTINCT author FROM \(Self.noted(table)) WHERE author IS NOT NULL
        LIMIT \(Self.authorsMax)
        """)
      for row in rows { if case .text(let author) = row["author"] { found.insert(author) } }
    }
    return found.sorted()
  }

  /// Returns true if several devices have changed rows of a table: the rows of each one come
  /// together then.
  func hasSeveralAuthors(
    _ table: MirrorTable, _ connection: SQLiteConnection
  ) throws -> Bool {
    try connection.first(
      """
      SELECT min(author) <> max(author) OR count(author) BETWEEN 1 AND count(*) - 1
      FROM \(Self.noted(table))
      """
    ) { $0.int64(0) == 1 } ?? false
  }
}

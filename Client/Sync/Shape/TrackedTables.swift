import FerryProtocol
import FerrySQLite

/// The tracked tables, and the directions of their changes: `ferry_tables` (SPEC.md §17).
///
/// Names are those in the space, unless a function states otherwise.
struct TrackedTables {
  let connection: SQLiteConnection

  // MARK: Names

  func names() throws -> [Name] {
    try connection.rows("SELECT name FROM ferry_tables ORDER BY name") { $0.name(0) }
  }

  /// Returns the names in this file.
  func locals() throws -> [Name] {
    try connection.rows("SELECT local FROM ferry_tables ORDER BY local") { $0.name(0) }
  }

  func contains(_ table: Name) throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_tables WHERE name = ?", table)
  }

  /// - Parameter shared: the column of this file with the space of each row; `nil` if all rows
  ///   belong to this space.
  func add(_ table: TableSchema, _ identity: KeyIdentity, sharedBy shared: Name?) throws {
    try connection.run(
      """
      INSERT INTO ferry_tables(name, local, identity, space_column, signature)
      VALUES (?, ?, ?, ?, '')
      """, table.name, table.local, identity.rawValue, shared)
  }

  func remove(_ table: Name) throws {
    try connection.run("DELETE FROM ferry_tables WHERE name = ?", table)
  }

  // MARK: Directions

  /// Selects operations of tables that receive others' changes.
  static let isTwoWay =
    "tbl NOT IN (SELECT name FROM ferry_tables WHERE direction <> 'two-way')"

  /// The direction of a table, two-way from the next pull on.
  private static let returning = "returning"

  /// Returns the upload-only tables.
  func uploads() throws -> [Name] {
    try connection.rows(
      "SELECT name FROM ferry_tables WHERE direction <> 'two-way' ORDER BY name"
    ) { $0.name(0) }
  }

  /// Returns the upload-only tables of one kind.
  func uploads(automatic: Bool) throws -> Set<Name> {
    let direction = TrackDirection.uploadOnly(automatic: automatic).kept
    return Set(
      try connection.rows("SELECT name FROM ferry_tables WHERE direction = ?", direction) {
        $0.name(0)
      })
  }

  /// Returns the direction of a table, after the fill if there is one; `nil` if it is not tracked.
  func direction(of table: Name) throws -> TrackDirection? {
    try connection.first(
      "SELECT coalesce(filled, direction) FROM ferry_tables WHERE name = ?", table
    ) { TrackDirection(kept: $0.text(0)) }
  }

  /// Sets the direction of a table. A change to two-way happens with the next pull.
  func set(_ direction: TrackDirection, of table: Name) throws {
    let kept = direction == .twoWay ? Self.returning : direction.kept
    try connection.run(
      "UPDATE ferry_tables SET direction = ?, filled = NULL WHERE name = ?", kept, table)
  }

  /// Makes a table two-way until a pull has applied the rows of the space.
  func fill(_ table: Name, then direction: TrackDirection) throws {
    try connection.run(
      """
      UPDATE ferry_tables SET filled = ?1,
        direction = iif(direction = 'two-way', direction, ?2) WHERE name = ?3
      """, direction.kept, Self.returning, table)
  }

  /// Returns the tables filled by the current pull, with their directions after it.
  func fills() throws -> [(table: Name, direction: TrackDirection)] {
    try connection.rows(
      """
      SELECT name, filled FROM ferry_tables
      WHERE filled IS NOT NULL AND direction = 'two-way' ORDER BY name
      """
    ) { ($0.name(0), TrackDirection(kept: $0.text(1))) }
  }

  /// Returns true if a pull must fetch the omitted records of a table.
  func hasReturning() throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_tables WHERE direction = ?", Self.returning)
  }

  /// Makes the returning tables two-way.
  func endReturns() throws {
    try connection.run(
      "UPDATE ferry_tables SET direction = 'two-way' WHERE direction = ?", Self.returning)
  }
}

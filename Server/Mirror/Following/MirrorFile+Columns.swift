import FerryPersistence
import FerryProtocol
import FerrySQLite

/// The columns of the tables in a mirror's file, as the company's tables have them.
extension MirrorFile {
  /// Returns the columns of a table in the file.
  ///
  /// - Parameter withRenamed: also those with another name than in the space.
  static func columns(
    of table: Name, withRenamed: Bool = true, _ database: Database
  ) throws -> Set<Name> {
    let all = "SELECT name FROM pragma_table_info(?1)"
    let others = " WHERE name NOT IN (SELECT col FROM ferry_names WHERE tbl = ?1 AND col <> '')"
    let rows = try database.query(withRenamed ? all : all + others, [.text(table.text)])
    return Set(
      rows.compactMap { row in if case .text(let name) = row["name"] { Name(name) } else { nil } })
  }

  /// Gives columns the company's names. The space keeps the first ones.
  func renameColumns(_ renamed: RenamedColumns, _ database: Database) throws {
    for table in plan.tables {
      for (first, name) in renamed.all(in: table.name).sorted(by: { $0.key < $1.key }) {
        let rows = try database.query(
          "SELECT col FROM ferry_names WHERE tbl = ? AND first = ? AND col <> ''",
          [.text(table.name.text), .text(first.text)])
        var former = first
        if case .text(let known)? = rows.first?["col"] { former = Name(known) }
        guard former != name, try Self.columns(of: table.name, database).contains(former) else {
          continue
        }
        try watchAll(table, database)
        try database.renameColumn(former, of: table.name, to: name)
        try UnsentChanges(database: database).rename(former, of: table.name, to: name)
      }
    }
  }

  /// Makes each update count until ``prepare(_:)``, if the file has its trigger.
  private func watchAll(_ table: MirrorTable, _ database: Database) throws {
    guard try Self.trigger("UPDATE", of: table, in: database) != nil else { return }
    try database.execute(
      single: "DROP TRIGGER \(quoted(Self.name(ofTrigger: "UPDATE", table)))")
    try database.execute(single: Self.trigger("UPDATE", table, Self.isAny))
  }

  /// Adds columns of the schema missing in the replica's tables.
  func addColumns(_ database: Database) throws {
    for table in plan.tables {
      let present = try Self.columns(of: table.name, database)
      let absent = table.columns.filter { !present.contains($0.name) }
      // Values that have waited for a column come with it, before the trigger knows the column.
      if !absent.isEmpty { try watchAll(table, database) }
      for column in absent {
        try database.execute(
          single: """
            ALTER TABLE \(quoted(table.name))
            ADD COLUMN \(quoted(column.name)) \(column.affinity.sql())\(Self.rest(column))
            """)
      }
    }
  }

  /// Returns the clauses of an added column. Existing rows have the default value, as on devices.
  private static func rest(_ column: MirrorColumn) -> String {
    if column.defaultValue == .null { return "" }
    return (column.isRequired ? " NOT NULL" : "") + " DEFAULT \(column.defaultValue.literal)"
  }
}

import FerryProtocol
import FerrySQLite

/// A row with a foreign key that refers to no record.
struct DanglingRow {
  let child: RecordKey
  let link: ForeignKey
  /// True if the row is of a tracked table; others have no identifiers.
  let isTracked: Bool
  /// The values of the foreign key's columns.
  let values: [Value]
  /// The tracked record with the key that the row refers to; `nil` if there is none.
  var parent: RecordKey?
}

/// Foreign keys left dangling by a pull.
struct DanglingRows {
  private let file: ReplicaFile
  private var connection: SQLiteConnection { file.connection }

  init(_ file: ReplicaFile) { self.file = file }

  /// Returns all dangling rows, inside the transaction that created them. Lists that are filled in have other
  /// checks.
  func all() throws -> [DanglingRow] {
    let broken = try connection.prepare(
      "SELECT DISTINCT \"table\", fkid FROM pragma_foreign_key_check()"
    ).rows { (table: $0.name(0), foreignKey: $0.int64(1)) }
    return try broken.filter { !ShadowTables.isCopy($0.table) }.flatMap {
      try rows(of: $0.table, foreignKey: $0.foreignKey)
    }
  }

  /// Returns the record referred to by `row`, in a state of the replica with that record.
  func target(of row: DanglingRow) throws -> RecordKey? {
    guard let parent = try? file.tables.schema(local: row.link.parent) else { return nil }
    let conditions = row.link.to.enumerated().map { "\(quoted($1)) = ?\($0 + 1)" }
    return try connection.first(
      "SELECT \(parent.record()) FROM \(quoted(parent.local)) "
        + "WHERE \(conditions.joined(separator: " AND "))", SQLiteList(row.values)
    ) { row in
      row.isNull(0) ? nil : RecordKey(table: parent.name, record: row.name(0))
    } ?? nil
  }

  /// Adds the tracked records referred to by rows through one foreign key. Numbers of mapped keys
  /// are known only within the transaction that has chosen them.
  private func addParents(to rows: [DanglingRow], by link: ForeignKey) throws -> [DanglingRow] {
    guard let parent = try file.tables.foreignKeys.parent(of: link) else { return rows }
    let places = parent.keys.compactMap { key in
      link.to.firstIndex { $0.folded == key.local.folded }
    }
    guard places.count == link.to.count, places.count == parent.keys.count else { return rows }
    return try rows.map { row in
      var row = row
      row.parent = try file.rows.identifier(in: parent, key: places.map { row.values[$0] }).map {
        RecordKey(table: parent.name, record: $0)
      }
      return row
    }
  }

  /// Finds dangling rows by their columns, since a row of a WITHOUT ROWID table has no other name.
  private func rows(of name: Name, foreignKey: Int64) throws -> [DanglingRow] {
    let isTracked = try file.tables.trackedTable(local: name) != nil
    // An untracked table may have no primary key.
    let table =
      isTracked ? try file.tables.schema(local: name) : TableSchema(untracked: name)
    guard
      let link = try file.tables.foreignKeys.keys(of: table).first(where: { $0.id == foreignKey })
    else { return [] }
    let from = link.from.map { "c.\(quoted($0))" }
    let record =
      isTracked
      ? table.record(of: "c") : from.map { "quote(\($0))" }.joined(separator: " || ',' || ")
    let rows = try connection.prepare(
      """
      SELECT \(record), \(from.joined(separator: ", "))
      FROM \(quoted(table.local)) AS c
      WHERE \(link.isDangling())
      """
    ).rows { row in
      DanglingRow(
        child: RecordKey(table: table.name, record: row.name(0)), link: link,
        isTracked: isTracked,
        values: link.from.indices.map { row.value(Int32($0) + 1) })
    }
    return isTracked ? try addParents(to: rows, by: link) : rows
  }

  /// Returns the records of a pass that need one of these rows.
  ///
  /// - Parameter written: the records written by the pass; `nil` if it has not stored them.
  func dependants(
    of rows: [DanglingRow], written: WrittenRecords?
  ) throws -> DependentRecords<RecordKey> {
    guard let written else { return DependentRecords(references: []) }
    let roots = Set(rows.filter(\.isTracked).map(\.child))
    return try written.dependants(
      of: roots.sorted(), file.tables.parentRules().links, parent: file.tables.foreignKeys.parent)
  }
}

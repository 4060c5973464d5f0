import FerryProtocol
import FerrySQLite

/// The rows of records in this file, with the values known to the space.
struct RecordRows {
  let tables: LocalTables
  private var connection: SQLiteConnection { tables.connection }

  /// Returns true if a record has a row.
  func has(_ key: RecordKey) throws -> Bool {
    let table = try tables.schema(of: key.table)
    return try connection.exists(
      "SELECT 1 FROM \(quoted(table.local)) WHERE \(table.has(record: "?1"))", key.record)
  }

  /// Returns the value of a record's row in a column; `nil` if there is no row.
  func value(of column: Name, in key: RecordKey) throws -> Value? {
    try row(key, tables.schema(of: key.table), [column])?.first?.value
  }

  /// Returns columns of a row, all of them by default; `nil` without a row.
  func row(_ key: RecordKey, _ table: TableSchema, _ names: [Name]? = nil) throws -> [Column]? {
    let names = names ?? table.columns.map(\.name)
    let reads = ["1"] + names.map { table.column($0).read("t") }
    return try connection.first(
      "SELECT \(reads.joined(separator: ", ")) FROM \(quoted(table.local)) AS t "
        + "WHERE \(table.has(record: "?1", in: "t"))", key.record
    ) { row in
      names.enumerated().map { Column($1, row.value(Int32($0) + 1)) }
    }
  }

  // MARK: Keys

  /// Returns the identifier of the record with a key of this file; `nil` if no row has it.
  func record(of local: Name, key: [Value]) throws -> Name? {
    let table = try tables.schema(local: local)
    guard key.count == table.keys.count else { return nil }
    let conditions = table.keyList.enumerated().map { "t.\($1) = ?\($0 + 1)" }
    return try connection.first(
      "SELECT \(table.record(of: "t")) FROM \(quoted(table.local)) AS t "
        + "WHERE \(conditions.joined(separator: " AND "))", SQLiteList(key)
    ) { $0.type(0) == .text ? $0.name(0) : nil } ?? nil
  }

  /// Returns the identifier of a record with this key, also if it has no row; `nil` if there is none.
  func identifier(in table: TableSchema, key: [Value]) throws -> Name? {
    let row = table.keys.enumerated().map { "?\($0 + 1) AS \(quoted($1.local))" }
    return try connection.first(
      "SELECT \(table.record()) FROM (SELECT \(row.joined(separator: ", ")))", SQLiteList(key)
    ) { row in row.type(0) == .text ? row.name(0) : nil } ?? nil
  }

  /// Returns the key of a record's row in this file; `nil` if it has none.
  func key(of record: Name, in local: Name) throws -> [Value]? {
    let table = try tables.schema(local: local)
    return try connection.first(
      "SELECT \(table.keyList.joined(separator: ", ")) FROM \(quoted(table.local)) "
        + "WHERE \(table.has(record: "?1"))", record
    ) { row in table.keys.indices.map { row.value(Int32($0)) } }
  }
}

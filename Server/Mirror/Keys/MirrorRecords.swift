import FerryProtocol
import FerrySQLite
import Foundation

/// The identifiers of records and the keys of their rows, as a mirror's file has them.
struct MirrorRecords {
  let plan: MirrorPlan
  let connection: SQLiteConnection

  init(_ plan: MirrorPlan, _ connection: SQLiteConnection) {
    (self.plan, self.connection) = (plan, connection)
  }

  /// Returns the texts of the key of a record (SPEC.md §27); `nil` if no row can have it.
  func key(of record: String, in table: MirrorTable) throws -> [String?]? {
    if table.isMapped { return try number(of: record, in: table.name).map { ["\($0)"] } }
    guard let texts = table.key(ofRecord: record) else { return nil }
    var key: [String?] = []
    for (column, text) in zip(table.key, texts) {
      guard let parent = plan.mapped(table, column.name), let text else {
        key.append(text)
        continue
      }
      guard let number = try number(of: text, in: parent) else { return nil }
      key.append("\(number)")
    }
    return key
  }

  /// Returns a value of the space as the table has it.
  func value(_ value: Value, of column: Name, in table: MirrorTable) throws -> Value {
    guard let parent = plan.mapped(table, column), case .text(let record) = value else {
      return value
    }
    return try number(of: record, in: parent).map { .integer($0) } ?? value
  }

  /// Returns the names in the space of columns that have another name in the file (SPEC.md §26).
  func spaceNames(in table: MirrorTable) throws -> [Name: Name] {
    let names = try connection.rows(
      "SELECT col, first FROM ferry_names WHERE tbl = ? AND col <> ''", table.name
    ) { ($0.name(0), $0.name(1)) }
    return Dictionary(names) { $1 }
  }

  /// Returns values of an operation as the table has them, by the table's names. Columns that do not
  /// travel are omitted.
  func values(_ values: [Name: Value], in table: MirrorTable) throws -> [Name: Value] {
    let names = try spaceNames(in: table)
    var found: [Name: Value] = [:]
    for column in table.columns {
      guard let value = values[names[column.name] ?? column.name] else { continue }
      found[column.name] = try self.value(value, of: column.name, in: table)
    }
    return found
  }

  /// Returns the number of a record, also of a deleted one.
  func number(of record: String, in table: Name) throws -> Int64? {
    try connection.first(
      "SELECT number FROM ferry_keys WHERE tbl = ? AND record = ?", table, record
    ) { $0.int64(0) }
  }

  /// Returns the record whose row has a number; `nil` if there is no row.
  func record(of number: Int64, in table: Name) throws -> String? {
    try connection.first(
      "SELECT record FROM ferry_keys WHERE tbl = ? AND number = ? AND grp IS NULL", table, number
    ) { $0.text(0) }
  }

  /// Returns the devices' records with the numbers of some keys.
  func devices(
    _ keys: [[String?]], in table: MirrorTable, _ derived: DerivedRecords
  ) throws -> [NumberedRow] {
    try keys.compactMap { key in
      guard let number = key.first.flatMap({ $0 }).flatMap({ Int64($0) }),
        let record = try record(of: number, in: table.name),
        record != derived.record(of: number)
      else { return nil }
      return NumberedRow(record: record, number: number)
    }
  }
}

extension MirrorPlan {
  /// Returns the mapped table to whose numbers a column refers; `nil` for any other column.
  func mapped(_ table: MirrorTable, _ column: Name) -> Name? {
    let reference = table.references.first { $0.columns == [column] && isMapped($0.table) }
    return reference?.table
  }

  private func isMapped(_ name: Name) -> Bool { tables.first { $0.name == name }?.isMapped == true }
}

import FerryProtocol
import FerrySQLite

/// A column of a table.
public struct ColumnInfo: Sendable, Equatable {
  /// The column's name.
  public let name: Name
  /// The declared type, such as `TEXT`; may be empty.
  public let type: String
  /// True if it is NOT NULL.
  public let isRequired: Bool
  /// The place in the primary key, counted from 1; 0 if it is not part of it.
  public let keyPlace: Int
  /// True if SQLite computes it: no value can be written.
  public let isGenerated: Bool
}

/// A table and the columns for the values of a record.
public struct TableInfo: Sendable, Equatable {
  /// The table's name.
  public let name: Name
  /// The columns, in their order.
  public let columns: [ColumnInfo]
  /// The columns of the primary key, in the key's order.
  public let key: [Name]
  /// True if the table exists in the file already.
  let exists: Bool
  private let places: [Name: Int]
  private let isUnrestricted: Bool

  init(
    _ name: Name, _ columns: [ColumnInfo], exists: Bool = true, isUnrestricted: Bool = false
  ) {
    self.name = name
    self.columns = columns
    self.exists = exists
    self.isUnrestricted = isUnrestricted
    key = columns.filter { $0.keyPlace > 0 }.sorted { $0.keyPlace < $1.keyPlace }.map(\.name)
    var places: [Name: Int] = [:]
    for (place, column) in columns.enumerated() {
      places[column.name] = place
      places[column.name.folded] = place
    }
    self.places = places
  }

  /// Accepts every column: a record returns all columns it has.
  public static let unrestricted = TableInfo("", [], isUnrestricted: true)

  /// Accepts every column for a table of this name.
  public static func unrestricted(named name: Name) -> TableInfo {
    TableInfo(name, [], isUnrestricted: true)
  }

  /// Returns true if a record may write a value to this column. ASCII letters match in either case.
  public func accepts(_ name: Name) -> Bool {
    if isUnrestricted { return true }
    return place(of: name).map { !columns[$0].isGenerated } ?? false
  }

  /// Returns the column of this name.
  ///
  /// - Throws: ``RecordError`` with the names of all columns if there is none.
  public func column(_ name: Name) throws -> ColumnInfo {
    guard let place = place(of: name) else {
      throw RecordError(
        .unknownColumn, table: self.name, column: name,
        "table \(self.name) has no column \(name); it has "
          + columns.map(\.name.text).joined(separator: ", "))
    }
    return columns[place]
  }

  func place(of name: Name) -> Int? { places[name] ?? places[name.folded] }

  /// Throws if the table has no key.
  func checkedKey() throws -> [Name] {
    guard !key.isEmpty else {
      throw RecordError(
        .noKey, table: name, "table \(name) has no primary key; use a query to name its rows")
    }
    return key
  }
}

extension Database {
  /// Returns the table or view of this name; `nil` if there is none.
  func table(_ name: Name) throws -> TableInfo? {
    if let known = knownTables[name] { return known }
    let columns = try connection.rows(
      """
      SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1
      """, name
    ) {
      ColumnInfo(
        name: $0.name(0), type: $0.text(1), isRequired: $0.int64(2) != 0,
        keyPlace: Int($0.int64(3)), isGenerated: $0.int64(4) > 1)
    }
    guard !columns.isEmpty else { return nil }
    let table = TableInfo(name, columns)
    knownTables[name] = table
    return table
  }
}

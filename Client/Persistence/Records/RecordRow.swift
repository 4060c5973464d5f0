import FerryProtocol
import FerrySQLite

/// The current row of a result, for `init(row:)` of a ``Record``. Valid only inside it: the same
/// object shows the next row afterwards.
///
/// ```swift
/// struct Heading: Record {
///   let text: String
///   init(row: RecordRow) throws { text = try row.decode(String.self, "title") }
///   func columns(for table: TableInfo) throws -> RecordColumns { [:] }
/// }
/// ```
public final class RecordRow {
  /// The table of the row.
  public let table: Name
  /// The names of the columns.
  public let names: [Name]
  /// The statement that keeps the columns valid.
  private let statement: SQLiteStatement?
  /// The columns of the statement's current row; `nil` for a row of values.
  private let current: SQLiteColumns?
  private let values: [Value]
  private var places: [Name: Int] = [:]
  /// The names in the order of the last record's requests, with their places. Records of one type
  /// always ask in the same order, so no further row needs a search.
  @exclusivity(unchecked) private var asked: [(name: String, place: Int)] = []
  @exclusivity(unchecked) private var next = 0
  /// A column and the type of a property.
  struct Property: Hashable {
    let place: Int
    let type: ObjectIdentifier
  }

  /// The container of the last record, with a reference to this row.
  @exclusivity(unchecked) var kept: KeptContainers?
  /// True if the next row is decoded by this object. Then ``decodingRows(_:)`` lets the container
  /// go.
  @exclusivity(unchecked) private(set) var keepsContainers = false

  /// Properties with JSON values.
  var nested: Set<Property> = []

  init(_ statement: SQLiteStatement, of table: Name) {
    self.table = table
    self.statement = statement
    current = statement.columns
    names = (0..<statement.columnCount).map { Name(statement.columnName($0)) }
    values = []
    index()
  }

  init(_ columns: RecordColumns, of table: Name = "") {
    self.table = table
    (statement, current) = (nil, nil)
    names = columns.names
    values = columns.all.map(\.value)
    index()
  }

  init(names: [Name], values: [Value]) {
    table = ""
    (statement, current) = (nil, nil)
    (self.names, self.values) = (names, values)
    index()
  }

  /// Indexes the columns; the first of several columns with one name counts.
  private func index() {
    for (place, name) in names.enumerated().reversed() {
      places[name.folded] = place
      places[name] = place
    }
  }

  /// Returns the value of a column; `nil` if the result does not have the column.
  public subscript(name: Name) -> Value? {
    (places[name] ?? places[name.folded]).map(value)
  }

  /// Returns the value of a column as a property of this type.
  ///
  /// - Throws: ``RecordError`` if the column is absent or the value is of another type.
  public func decode<T: Decodable>(_ type: T.Type, _ name: Name) throws -> T {
    do {
      guard let place = places[name] ?? places[name.folded] else { throw missing(name) }
      return try ColumnDecoder(row: self, place: place).value(type)
    } catch let error as DecodingError {
      throw self.error(for: error)
    }
  }

  /// All values of the row.
  var columns: RecordColumns {
    var columns = RecordColumns(capacity: names.count)
    for (place, name) in names.enumerated() where places[name] == place {
      columns.append(name, value(place))
    }
    return columns
  }

  /// Runs `body` to decode one row after another.
  func decodingRows<T>(_ body: () throws -> T) rethrows -> T {
    keepsContainers = true
    defer {
      keepsContainers = false
      kept = nil
    }
    return try body()
  }

  // MARK: Places

  /// Begins a record.
  func restart() { next = 0 }

  /// Returns the place of a column; -1 if the result does not have it.
  func place(of name: String) -> Int {
    if next < asked.count, Self.isSame(asked[next].name, name) {
      next += 1
      return asked[next - 1].place
    }
    // Optional properties ask two or three times.
    if next > 0, Self.isSame(asked[next - 1].name, name) { return asked[next - 1].place }
    let column = Name(name)
    let place = places[column] ?? places[column.folded] ?? -1
    if next == asked.count {
      asked.append((name, place))
      next += 1
    }
    return place
  }

  /// Compares coding keys. Texts equal in Swift with different bytes have different lengths, except
  /// for rare orders of combining marks.
  @inline(__always)
  private static func isSame(_ one: String, _ other: String) -> Bool {
    one.utf8.count == other.utf8.count && one == other
  }

  func checkedPlace(_ name: String) throws -> Int {
    let place = place(of: name)
    if place >= 0 { return place }
    throw missing(Name(name))
  }

  private func missing(_ name: Name) -> RecordError {
    RecordError(
      .missingColumn, table: table, column: name,
      "the result\(table.isEmpty ? "" : " from table \(table)") has no column \(name); it has "
        + names.map(\.text).joined(separator: ", "))
  }

  // MARK: Values

  func value(_ place: Int) -> Value { statement?.value(Int32(place)) ?? values[place] }

  func isNull(_ place: Int) -> Bool {
    current?.isNull(Int32(truncatingIfNeeded: place)) ?? (values[place] == .null)
  }

  func int64(_ place: Int, as type: String = "an integer") throws -> Int64 {
    if let integer = current?.integer(Int32(truncatingIfNeeded: place)) { return integer }
    guard case .integer(let integer) = value(place) else { throw wrong(place, isNot: type) }
    return integer
  }

  func double(_ place: Int) throws -> Double {
    if let real = current?.real(Int32(truncatingIfNeeded: place)) { return real }
    switch value(place) {
    case .real(let real): return real
    // A column without a type stores 3.0 from elsewhere as 3.
    case .integer(let integer):
      if let real = Double(exactly: integer) { return real }
    default: break
    }
    throw wrong(place, isNot: "a real")
  }

  func text(_ place: Int, as type: String = "a text") throws -> String {
    if let text = current?.text(Int32(truncatingIfNeeded: place)) { return text }
    guard case .text(let text) = value(place) else { throw wrong(place, isNot: type) }
    return text
  }

  // MARK: Errors

  func wrong(_ place: Int, isNot type: String) -> RecordError {
    .wrong(value(place), isNot: type, table: table, column: names[place])
  }

  /// Returns the error for one thrown by a type's own `init(from:)`.
  @usableFromInline
  func error(for error: DecodingError) -> RecordError {
    let context: DecodingError.Context? =
      switch error {
      case .typeMismatch(_, let context), .valueNotFound(_, let context),
        .keyNotFound(_, let context), .dataCorrupted(let context):
        context
      @unknown default: nil
      }
    let name = context?.codingPath.first.map { Name($0.stringValue) }
    let value = name.flatMap { self[$0] }.map { " (\($0.shown))" } ?? ""
    return RecordError(
      .wrongValue, table: table, column: name,
      (table.isEmpty ? "the result" : "table \(table)")
        + "\(name.map { ", column \($0)" } ?? "")\(value): "
        + (context?.debugDescription ?? "\(error)"))
  }
}

import FerryProtocol

extension Row {
  /// Returns the value of the first column of this name; an ASCII letter in the other case counts
  /// as the same.
  ///
  /// - Throws: ``RecordError`` of kind `missingColumn`, with a list of the row's columns.
  public func value(_ name: Name) throws -> Value { try decoded.checkedValue(name) }

  /// Returns the value of a column as a Swift type: a number, `String`, `Bool`, `Date`, `URL`,
  /// `UUID`, `Decimal`, `Data`, an enum, a list or another `Codable` type from JSON text, or an
  /// optional of these; see the table of ``Record``.
  ///
  /// ```swift
  /// let due = try row.decode(Date?.self, "due")
  /// ```
  ///
  /// - Throws: ``RecordError`` if the column is absent or the value is of another type.
  public func decode<T: Decodable>(_ type: T.Type, _ name: Name) throws -> T {
    try decoded.decode(type, name)
  }

  /// Returns the whole row as a value: each property has the column of its coding key. A type with
  /// a single value, such as `Int` or `Date`, is the row's only column.
  ///
  /// ```swift
  /// struct Heading: Decodable { var id: String, title: String }
  /// let heading = try row.decode(Heading.self)
  /// ```
  ///
  /// - Throws: ``RecordError`` if a column is absent or a value is of another type.
  public func decode<T: Decodable>(_ type: T.Type) throws -> T { try decoded.decode(type) }

  private var decoded: RecordRow { RecordRow(names: names.map { Name($0) }, values: values) }
}

extension Value {
  /// Returns the value as a Swift type, as ``Row/decode(_:_:)`` does.
  ///
  /// - Throws: ``RecordError`` if it is of another type.
  public func decode<T: Decodable>(_ type: T.Type) throws -> T {
    try RecordRow(names: ["value"], values: [self]).decode(type, "value")
  }

  /// True if the value is NULL.
  public var isNull: Bool { self == .null }
  /// The integer; `nil` for a value of another type, or outside of the range of `Int`.
  public var intValue: Int? { try? decode(Int.self) }
  /// The number; `nil` for a text, a blob or NULL.
  public var doubleValue: Double? { try? decode(Double.self) }
  /// The text; `nil` for a value of another type.
  public var stringValue: String? { try? decode(String.self) }
  /// True if the integer is 1; `nil` for values other than the integers 0 and 1.
  public var boolValue: Bool? { try? decode(Bool.self) }
  /// The bytes of a blob; `nil` for a value of another type.
  public var bytesValue: [UInt8]? { try? decode([UInt8].self) }
}

extension RecordRow {
  func checkedValue(_ name: Name) throws -> Value { value(try checkedPlace(name.text)) }

  /// Returns the row as a value of any type.
  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    restart()
    let only = names.count == 1 ? ColumnDecoder(row: self, place: 0) : nil
    do {
      if let known = try only?.known(type) { return known }
      return try T(from: WholeRowDecoder(row: self, only: only))
    } catch is IsNested {
      // A list is the JSON text of the only column.
      guard let only else { throw hasOtherColumns() }
      return try only.value(type)
    } catch let error as DecodingError {
      throw self.error(for: error)
    }
  }

  fileprivate func hasOtherColumns() -> RecordError {
    RecordError(
      .invalid, table: table,
      "a row of \(names.count) columns is not a list or a single value; select one column")
  }
}

/// A row as a decoder of a type with properties or with a single value.
private struct WholeRowDecoder: Decoder {
  let row: RecordRow
  /// The column of a row with one column.
  let only: ColumnDecoder?

  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy key: Key.Type) throws -> KeyedDecodingContainer<Key> {
    try RowDecoder(row: row).container(keyedBy: key)
  }
  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw IsNested() }
  func singleValueContainer() throws -> any SingleValueDecodingContainer {
    guard let only else { throw row.hasOtherColumns() }
    return only
  }
}

import FerryProtocol

/// A row as a decoder: each key is a column.
@usableFromInline
struct RowDecoder: Decoder {
  @usableFromInline let row: RecordRow

  @usableFromInline var codingPath: [any CodingKey] { [] }
  @usableFromInline var userInfo: [CodingUserInfoKey: Any] { [:] }

  @inlinable
  init(row: RecordRow) { self.row = row }

  @usableFromInline
  func container<Key: CodingKey>(keyedBy: Key.Type) throws -> KeyedDecodingContainer<Key> {
    row.restart()
    if let kept = row.kept, kept.key == ObjectIdentifier(keyedBy) {
      return unsafeDowncast(kept, to: KeptContainer<Key>.self).container
    }
    let kept = KeptContainer<Key>(KeyedDecodingContainer(RowContainer<Key>(row: row)))
    if row.keepsContainers { row.kept = kept }
    return kept.container
  }

  @usableFromInline
  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw noKeys() }
  @usableFromInline
  func singleValueContainer() throws -> any SingleValueDecodingContainer { throw noKeys() }

  private func noKeys() -> RecordError {
    RecordError(
      .invalid, table: row.table,
      "a row of table \(row.table) fills types with properties, not a list or a single value")
  }
}

/// A container kept by a row for the next record: the type costs more to make than to use.
class KeptContainers {
  /// The type of the keys.
  let key: ObjectIdentifier
  init(_ key: ObjectIdentifier) { self.key = key }
}

/// The container for one type of keys.
private final class KeptContainer<Key: CodingKey>: KeptContainers {
  let container: KeyedDecodingContainer<Key>

  init(_ container: KeyedDecodingContainer<Key>) {
    self.container = container
    super.init(ObjectIdentifier(Key.self))
  }
}

/// The columns of a row by their keys.
private struct RowContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let row: RecordRow

  var codingPath: [any CodingKey] { [] }
  var allKeys: [Key] { row.names.compactMap { Key(stringValue: $0.text) } }

  func contains(_ key: Key) -> Bool { row.place(of: key.stringValue) >= 0 }
  func decodeNil(forKey key: Key) throws -> Bool { row.isNull(try place(key)) }

  @inline(__always)
  private func place(_ key: Key) throws -> Int { try row.checkedPlace(key.stringValue) }

  @inline(__always)
  private func column(_ key: Key) throws -> ColumnDecoder {
    ColumnDecoder(row: row, place: try place(key))
  }

  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try column(key).decode(type) }
  func decode(_ type: String.Type, forKey key: Key) throws -> String {
    try row.text(try place(key))
  }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
    try row.double(try place(key))
  }
  func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try column(key).decode(type) }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try column(key).decode(type) }
  func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try column(key).decode(type) }
  func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try column(key).decode(type) }
  func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try column(key).decode(type) }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
    try row.int64(try place(key))
  }
  func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try column(key).decode(type) }
  func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try column(key).decode(type) }
  func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
    try column(key).decode(type)
  }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
    try column(key).decode(type)
  }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
    try column(key).decode(type)
  }
  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
    try column(key).value(type)
  }

  // Optional properties: one search for the column instead of three.

  /// Returns the place of a column other than NULL.
  @inline(__always)
  private func presentPlace(_ key: Key) -> Int? {
    let place = row.place(of: key.stringValue)
    return place >= 0 && !row.isNull(place) ? place : nil
  }

  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
    try presentPlace(key).map { try ColumnDecoder(row: row, place: $0).decode(type) }
  }
  func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
    try presentPlace(key).map { try row.text($0) }
  }
  func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
    try presentPlace(key).map { try row.double($0) }
  }
  func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
    try presentPlace(key).map { try ColumnDecoder(row: row, place: $0).decode(type) }
  }
  func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
    try presentPlace(key).map { try row.int64($0) }
  }
  func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
    try presentPlace(key).map { try ColumnDecoder(row: row, place: $0).value(type) }
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> { throw noNesting(key) }
  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    throw noNesting(key)
  }

  private func noNesting(_ key: Key) -> RecordError {
    RecordError(
      .invalid, table: row.table, column: Name(key.stringValue),
      "table \(row.table), column \(key.stringValue): use a Codable property for nested values, "
        + "not a nested container")
  }

  // A superclass has columns in the same row.
  func superDecoder() throws -> any Decoder { RowDecoder(row: row) }
  func superDecoder(forKey key: Key) throws -> any Decoder { RowDecoder(row: row) }
}

import FerryProtocol
import Foundation

/// Collects a record's values as columns: each key is a column. Keys not accepted by the table are
/// left out.
final class ColumnsEncoder: Encoder {
  let table: TableInfo
  private var columns: RecordColumns
  /// The reason why the record has no columns; a method that returns a container cannot throw.
  var fault: String?

  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(table: TableInfo) {
    self.table = table
    columns = RecordColumns(capacity: max(table.columns.count, 8))
  }

  func container<Key: CodingKey>(keyedBy: Key.Type) -> KeyedEncodingContainer<Key> {
    KeyedEncodingContainer(ColumnsContainer<Key>(encoder: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    fault = "a list is not a row; a record has properties"
    return DiscardedList()
  }

  func singleValueContainer() -> any SingleValueEncodingContainer {
    fault = "a single value is not a row; a record has properties"
    return ColumnEncoder()
  }

  /// Returns the columns of a record.
  func columns(of record: some Encodable) throws -> RecordColumns {
    try record.encode(to: self)
    if let fault {
      throw RecordError(.invalid, table: table.name, "table \(table.name): \(fault)")
    }
    return columns
  }

  func encode(_ value: Value, _ name: Name) {
    // The same key twice: the later value counts.
    if columns.all.contains(where: { $0.name == name }) {
      columns[name] = value
    } else {
      columns.append(name, value)
    }
  }
}

/// The columns of a record by their keys.
private struct ColumnsContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoder: ColumnsEncoder

  var codingPath: [any CodingKey] { [] }

  @inline(__always)
  private func encode(_ key: Key, _ value: @autoclosure () throws -> Value) rethrows {
    let name = Name(key.stringValue)
    if encoder.table.accepts(name) { encoder.encode(try value(), name) }
  }

  private func integer(_ value: some FixedWidthInteger, _ key: Key) throws {
    try encode(key, try stored(value, key))
  }

  private func stored(_ value: some FixedWidthInteger, _ key: Key) throws -> Value {
    guard let integer = Int64(exactly: value) else {
      throw unstorable("the integer \(value), above \(Int64.max),", key)
    }
    return .integer(integer)
  }

  private func real(_ value: Double, _ key: Key) throws -> Value {
    if value.isNaN { throw unstorable("NaN", key) }
    return .real(value)
  }

  private func unstorable(_ value: String, _ key: Key) -> RecordError {
    .unstorable(value, table: encoder.table.name, column: Name(key.stringValue))
  }

  func encodeNil(forKey key: Key) throws { encode(key, .null) }
  func encode(_ value: Bool, forKey key: Key) throws { encode(key, .integer(value ? 1 : 0)) }
  func encode(_ value: String, forKey key: Key) throws { encode(key, .text(value)) }
  func encode(_ value: Double, forKey key: Key) throws { try encode(key, try real(value, key)) }
  func encode(_ value: Float, forKey key: Key) throws {
    try encode(key, try real(Double(value), key))
  }
  func encode(_ value: Int, forKey key: Key) throws { encode(key, .integer(Int64(value))) }
  func encode(_ value: Int8, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: Int16, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: Int32, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: Int64, forKey key: Key) throws { encode(key, .integer(value)) }
  func encode(_ value: UInt, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: UInt8, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: UInt16, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: UInt32, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: UInt64, forKey key: Key) throws { try integer(value, key) }
  func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    do { try encode(key, try ColumnEncoder.value(value)) } catch let error as UnstorableValue {
      throw unstorable(error.description, key)
    }
  }

  // Swift leaves out properties with nil; a column needs NULL.
  private func optional<T>(_ value: T?, _ key: Key, _ body: (T, Key) throws -> Void) throws {
    if let value { try body(value, key) } else { encode(key, .null) }
  }

  func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try optional(value, key, encode) }
  func encodeIfPresent(_ value: String?, forKey key: Key) throws {
    try optional(value, key, encode)
  }
  func encodeIfPresent(_ value: Double?, forKey key: Key) throws {
    try optional(value, key, encode)
  }
  func encodeIfPresent(_ value: Float?, forKey key: Key) throws { try optional(value, key, encode) }
  func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try optional(value, key, encode) }
  func encodeIfPresent(_ value: Int8?, forKey key: Key) throws { try optional(value, key, encode) }
  func encodeIfPresent(_ value: Int16?, forKey key: Key) throws { try optional(value, key, encode) }
  func encodeIfPresent(_ value: Int32?, forKey key: Key) throws { try optional(value, key, encode) }
  func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try optional(value, key, encode) }
  func encodeIfPresent(_ value: UInt?, forKey key: Key) throws { try optional(value, key, encode) }
  func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws { try optional(value, key, encode) }
  func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws {
    try optional(value, key, encode)
  }
  func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws {
    try optional(value, key, encode)
  }
  func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws {
    try optional(value, key, encode)
  }
  func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
    try optional(value, key, encode)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> {
    encoder.fault = "use a Codable property for \(key.stringValue), not a nested container"
    return ColumnsEncoder(table: TableInfo("", [])).container(keyedBy: Nested.self)
  }
  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    encoder.fault = "use a Codable property for \(key.stringValue), not a nested container"
    return DiscardedList()
  }
  // A superclass has columns in the same row.
  func superEncoder() -> any Encoder { encoder }
  func superEncoder(forKey key: Key) -> any Encoder { encoder }
}

import FerryProtocol
import Foundation

/// A value that no column can store, for messages.
struct UnstorableValue: Error, CustomStringConvertible {
  let description: String
}

/// Finds the stored form of one property: a single value, or JSON if the type asks for keys or a
/// list.
final class ColumnEncoder: Encoder, SingleValueEncodingContainer {
  private var value: Value?
  private var isNested = false

  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  /// Returns the stored form of a value.
  static func value<T: Encodable>(_ value: T) throws -> Value {
    if let known = try known(value) { return known }
    let encoder = ColumnEncoder()
    try value.encode(to: encoder)
    if !encoder.isNested, let found = encoder.value { return found }
    do { return .text(try NestedJSON.text(value)) } catch let error as EncodingError {
      throw UnstorableValue(description: "a value of type \(T.self) (\(error))")
    }
  }

  /// Returns the form of types with a separate one; `nil` for other types.
  private static func known<T>(_ value: T) throws -> Value? {
    if T.self == String.self, let text = value as? String { return .text(text) }
    if T.self == Date.self, let date = value as? Date {
      guard let text = DateText.text(date) else {
        throw UnstorableValue(
          description: "the date \(date.timeIntervalSince1970) s, outside of the years 0 to 9999,")
      }
      return .text(text)
    }
    if T.self == Data.self, let data = value as? Data { return data.columnValue }
    if T.self == Decimal.self, let decimal = value as? Decimal {
      guard let text = DecimalText.text(decimal) else {
        throw UnstorableValue(description: "a decimal number that is NaN")
      }
      return .text(text)
    }
    if T.self == UUID.self, let id = value as? UUID { return id.columnValue }
    if T.self == URL.self, let url = value as? URL { return url.columnValue }
    if T.self == [UInt8].self, let bytes = value as? [UInt8] { return .blob(bytes) }
    return nil
  }

  // Containers that return no value: JSONEncoder encodes the property again.
  func container<Key: CodingKey>(keyedBy: Key.Type) -> KeyedEncodingContainer<Key> {
    isNested = true
    return ColumnsEncoder(table: TableInfo("", [])).container(keyedBy: Key.self)
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    isNested = true
    return DiscardedList()
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  // MARK: Single values

  private func integer(_ integer: some FixedWidthInteger) throws {
    guard let stored = Int64(exactly: integer) else {
      throw UnstorableValue(description: "the integer \(integer), above \(Int64.max),")
    }
    value = .integer(stored)
  }

  func encodeNil() { value = .null }
  func encode(_ bool: Bool) { value = bool.columnValue }
  func encode(_ text: String) { value = .text(text) }
  func encode(_ real: Double) throws {
    if real.isNaN { throw UnstorableValue(description: "NaN") }
    value = .real(real)
  }
  func encode(_ real: Float) throws { try encode(Double(real)) }
  func encode(_ number: Int) throws { try integer(number) }
  func encode(_ number: Int8) throws { try integer(number) }
  func encode(_ number: Int16) throws { try integer(number) }
  func encode(_ number: Int32) throws { try integer(number) }
  func encode(_ number: Int64) throws { try integer(number) }
  func encode(_ number: UInt) throws { try integer(number) }
  func encode(_ number: UInt8) throws { try integer(number) }
  func encode(_ number: UInt16) throws { try integer(number) }
  func encode(_ number: UInt32) throws { try integer(number) }
  func encode(_ number: UInt64) throws { try integer(number) }
  func encode<T: Encodable>(_ wrapped: T) throws { value = try Self.value(wrapped) }
}

/// A list that discards all values.
struct DiscardedList: UnkeyedEncodingContainer {
  private(set) var count = 0

  var codingPath: [any CodingKey] { [] }

  mutating func encodeNil() { count += 1 }
  mutating func encode(_ value: Bool) { count += 1 }
  mutating func encode(_ value: String) { count += 1 }
  mutating func encode(_ value: Double) { count += 1 }
  mutating func encode(_ value: Float) { count += 1 }
  mutating func encode(_ value: Int) { count += 1 }
  mutating func encode(_ value: Int8) { count += 1 }
  mutating func encode(_ value: Int16) { count += 1 }
  mutating func encode(_ value: Int32) { count += 1 }
  mutating func encode(_ value: Int64) { count += 1 }
  mutating func encode(_ value: UInt) { count += 1 }
  mutating func encode(_ value: UInt8) { count += 1 }
  mutating func encode(_ value: UInt16) { count += 1 }
  mutating func encode(_ value: UInt32) { count += 1 }
  mutating func encode(_ value: UInt64) { count += 1 }
  mutating func encode<T: Encodable>(_ value: T) { count += 1 }

  mutating func nestedContainer<Key: CodingKey>(
    keyedBy: Key.Type
  ) -> KeyedEncodingContainer<Key> {
    count += 1
    return ColumnsEncoder(table: TableInfo("", [])).container(keyedBy: Key.self)
  }
  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    count += 1
    return DiscardedList()
  }
  mutating func superEncoder() -> any Encoder {
    count += 1
    return ColumnsEncoder(table: TableInfo("", []))
  }
}

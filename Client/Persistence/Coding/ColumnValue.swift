import FerryProtocol
import Foundation

/// A value for a condition, a key, a column or a parameter of SQL, in the stored form of records;
/// see the table of ``Record``.
///
/// Enums with such a raw value and other `Codable` types conform without code:
///
/// ```swift
/// enum Urgency: String, Codable, ColumnValue { case low, high }
/// struct Place: Codable, ColumnValue { var street: String }
///
/// let urgent = Note.all.where(Field("urgency") == Urgency.high)
/// let here = Note.all.where(Field("place") == Place(street: "Quay 1"))
/// let due = try database.query("SELECT * FROM notes WHERE due < ?", arguments: [Date()])
/// ```
public protocol ColumnValue {
  /// The stored value.
  var columnValue: Value { get }
}

extension Value: ColumnValue { public var columnValue: Value { self } }
extension Int: ColumnValue { public var columnValue: Value { .integer(Int64(self)) } }
extension Int64: ColumnValue { public var columnValue: Value { .integer(self) } }
extension Int32: ColumnValue { public var columnValue: Value { .integer(Int64(self)) } }
extension Int16: ColumnValue { public var columnValue: Value { .integer(Int64(self)) } }
extension Int8: ColumnValue { public var columnValue: Value { .integer(Int64(self)) } }
extension UInt32: ColumnValue { public var columnValue: Value { .integer(Int64(self)) } }
extension UInt16: ColumnValue { public var columnValue: Value { .integer(Int64(self)) } }
extension UInt8: ColumnValue { public var columnValue: Value { .integer(Int64(self)) } }
extension Float: ColumnValue { public var columnValue: Value { Double(self).columnValue } }
extension Bool: ColumnValue { public var columnValue: Value { .integer(self ? 1 : 0) } }
extension String: ColumnValue { public var columnValue: Value { .text(self) } }
extension Name: ColumnValue { public var columnValue: Value { .text(text) } }
extension UUID: ColumnValue { public var columnValue: Value { .text(uuidString) } }
extension URL: ColumnValue { public var columnValue: Value { .text(absoluteString) } }
extension Data: ColumnValue { public var columnValue: Value { .blob([UInt8](self)) } }

/// A list of bytes is a blob, and another list is JSON text. A list without a JSON form, such as
/// one with NaN, is NULL.
extension Array: ColumnValue where Element: Encodable {
  public var columnValue: Value { (try? ColumnEncoder.value(self)) ?? .null }
}

/// JSON text; NULL if JSON cannot express it.
extension Dictionary: ColumnValue where Key: Encodable, Value: Encodable {
  public var columnValue: FerryProtocol.Value { (try? ColumnEncoder.value(self)) ?? .null }
}

/// Text with all digits, such as `12.50` without the last zero. NaN is NULL.
extension Decimal: ColumnValue {
  public var columnValue: Value { DecimalText.text(self).map { .text($0) } ?? .null }
}

/// NaN is NULL, as in SQLite: a condition with it looks for NULL, and an update with it stores NULL.
extension Double: ColumnValue {
  public var columnValue: Value { isNaN ? .null : .real(self) }
}

/// A text in UTC with milliseconds. Outside of the years 0 to 9999 it is NULL: a condition with it
/// looks for NULL, and an update with it stores NULL.
extension Date: ColumnValue {
  public var columnValue: Value { DateText.text(self).map { .text($0) } ?? .null }
}

extension Optional: ColumnValue where Wrapped: ColumnValue {
  public var columnValue: Value { self?.columnValue ?? .null }
}

extension ColumnValue where Self: RawRepresentable, RawValue: ColumnValue {
  public var columnValue: Value { rawValue.columnValue }
}

extension ColumnValue where Self: Encodable {
  /// JSON text for types with several properties; NULL if JSON cannot express the value, such as NaN.
  public var columnValue: Value { (try? ColumnEncoder.value(self)) ?? .null }
}

extension ColumnValue where Self: RawRepresentable & Encodable, RawValue: ColumnValue {
  public var columnValue: Value { rawValue.columnValue }
}

/// Nested values as JSON text: dates as in ``DateText``, bytes in base64, keys sorted.
enum NestedJSON {
  static func text(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .custom { date, encoder in
      guard let text = DateText.text(date) else {
        throw EncodingError.invalidValue(
          date,
          .init(codingPath: [], debugDescription: "the date is outside of the years 0 to 9999"))
      }
      var container = encoder.singleValueContainer()
      try container.encode(text)
    }
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }

  static func value<T: Decodable>(_ type: T.Type, _ text: String) throws -> T {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .custom { decoder in
      let container = try decoder.singleValueContainer()
      guard let date = DateText.date(try container.decode(String.self)) else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a date")
      }
      return date
    }
    return try decoder.decode(type, from: Data(text.utf8))
  }
}

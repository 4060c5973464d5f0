import FerryProtocol
import Foundation

/// A value for a condition, a key or a column, in the form in which records store it.
///
/// An enum with such a raw value conforms without code:
///
/// ```swift
/// enum Urgency: String, Codable, ColumnValue { case low, high }
/// let urgent = Note.all.where(Field("urgency") == Urgency.high)
/// ```
public protocol ColumnValue {
  /// The stored value.
  var columnValue: Value { get }
}

extension Value: ColumnValue { public var columnValue: Value { self } }
extension Int: ColumnValue { public var columnValue: Value { .integer(Int64(self)) } }
extension Int64: ColumnValue { public var columnValue: Value { .integer(self) } }
extension Int32: ColumnValue { public var columnValue: Value { .integer(Int64(self)) } }
extension Bool: ColumnValue { public var columnValue: Value { .integer(self ? 1 : 0) } }
extension String: ColumnValue { public var columnValue: Value { .text(self) } }
extension Name: ColumnValue { public var columnValue: Value { .text(text) } }
extension UUID: ColumnValue { public var columnValue: Value { .text(uuidString) } }
extension URL: ColumnValue { public var columnValue: Value { .text(absoluteString) } }
extension Data: ColumnValue { public var columnValue: Value { .blob([UInt8](self)) } }
extension [UInt8]: ColumnValue { public var columnValue: Value { .blob(self) } }

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

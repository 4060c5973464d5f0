import FerryCryptography
import FerryPlatform
import FerryProtocol
import Foundation

/// The type of a mirrored column in PostgreSQL.
package enum MirrorType: Sendable, Equatable {
  case bigint, double, numeric, text, bytea, boolean, json, jsonb, timestamptz, timestamp, date,
    uuid
  /// A type of a company's column, as texts.
  case carried(CarriedType)

  /// The types of an annotation.
  private static let annotations: [MirrorType] = [
    .bigint, .double, .numeric, .text, .bytea, .boolean, .json, .jsonb, .timestamptz, .timestamp,
    .date, .uuid,
  ]

  /// Reads an annotation.
  init?(annotation: String) {
    guard let type = Self.annotations.first(where: { $0.rawValue == annotation }) else {
      return nil
    }
    self = type
  }

  /// The type in SQL.
  package var rawValue: String {
    switch self {
    case .double: "double precision"
    case .carried(let type): type.sql
    default: "\(self)"
    }
  }

  /// The type of a column without an annotation.
  init(_ affinity: DeclaredColumn.Affinity) {
    self =
      switch affinity {
      case .text: .text
      case .integer: .bigint
      case .real: .double
      case .numeric: .numeric
      case .blob, .any: .bytea
      }
  }

  /// The SQL of a value in hardly any row; `nil` for types with few values, or many forms.
  var placeholder: String? {
    switch self {
    // A company's column may have four bytes.
    case .bigint, .double, .numeric: "-1 - floor(2147483647 * random())"
    case .text: "md5(random()::text)"
    case .uuid: "gen_random_uuid()"
    default: nil
    }
  }

  /// Returns `true` if an annotation may give a column of this affinity the type.
  func suits(_ affinity: DeclaredColumn.Affinity) -> Bool {
    switch self {
    case .boolean: affinity == .integer || affinity == .numeric
    case .json, .jsonb, .timestamptz, .timestamp, .date, .uuid: affinity == .text
    case .numeric: affinity == .text || affinity == .numeric
    case .carried: affinity == .text
    default: self == MirrorType(affinity)
    }
  }

  /// Returns the SQL to convert a text into a value.
  func decoded(_ text: String) -> String {
    switch self {
    case .bytea: "decode(\(text), 'hex')"
    case .carried(let type): type.decoded(text)
    default: "\(text)::\(rawValue)"
    }
  }

  /// Returns the SQL of a value's bytes; `nil` if all values are short.
  func size(_ value: String) -> String? {
    switch self {
    case .bytea: "octet_length(\(value))"
    case .text, .json, .jsonb: "octet_length(\(value)::text)"
    case .carried(let type): type.isShort ? nil : "octet_length(\(type.encoded(value)))"
    default: nil
    }
  }

  /// Returns the SQL to convert a value into a text, whatever the session's settings are.
  func encoded(_ value: String) -> String {
    switch self {
    case .bytea: "encode(\(value), 'hex')"
    case .timestamptz:
      "to_char(\(value) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
    case .timestamp: "to_char(\(value), 'YYYY-MM-DD\"T\"HH24:MI:SS.US')"
    case .date: "to_char(\(value), 'YYYY-MM-DD')"
    case .carried(let type): type.encoded(value)
    default: "\(value)::text"
    }
  }

  /// True for a date or a time of a day.
  var isTime: Bool { [.timestamptz, .timestamp, .date].contains(self) }

  /// Returns the SQL to convert a value of a key into a text. Devices have no other times, but the
  /// mirror names their rows.
  func keyEncoded(_ value: String) -> String {
    guard isTime else { return encoded(value) }
    return """
      (CASE WHEN isfinite(\(value)) AND \(value) > '0001-01-02' THEN \(encoded(value)) \
      ELSE \(CarriedType.written(value)) END)
      """
  }

  /// Returns the SQL of a value to compare with one sent. A column of four bytes has the same number
  /// in other bits.
  func stored(_ value: String) -> String {
    self == .double ? "\(value)::text::double precision" : compared(value)
  }

  /// Returns the SQL of a value as it is compared: PostgreSQL compares no `json`, and equal values of
  /// other types may have several texts.
  func compared(_ value: String) -> String {
    switch self {
    case .json: "\(value)::text"
    case .carried(let type): type.encoded(value)
    default: value
    }
  }
}

/// The reason why one side cannot hold a value of the other.
package struct MirrorFault: Error, Equatable, CustomStringConvertible {
  package let description: String
}

/// A column of a mirrored table.
package struct MirrorColumn: Sendable, Equatable {
  package var name: Name
  package var affinity: DeclaredColumn.Affinity
  package var type: MirrorType
  package var isRequired = false
  package var defaultValue = Value.null
  package var now: DeclaredColumn.Moment?
  package var policy = ConflictPolicy.lastWriterWins

  /// Returns the SQL of whether a device cannot hold a value; `nil` if it can hold all.
  func fault(_ value: String) -> String? {
    switch type {
    case .double: "\(value) = 'NaN'"
    // NaN is greater than all numbers.
    case .numeric where affinity == .numeric: "abs(\(value)) > 1e308"
    case .numeric: "length(\(value)::text) > 1000"
    // They travel in the form of ISO 8601.
    case .timestamptz: "NOT isfinite(\(value)) OR \(value) < '0001-01-02 00:00:00+00'"
    case .timestamp: "NOT isfinite(\(value)) OR \(value) < '0001-01-01'"
    case .date: "NOT isfinite(\(value)) OR \(value) < '0001-01-01'"
    case .carried(let type): type.fault(value)
    default: nil
    }
  }

  /// Returns the SQL of whether a device cannot hold a value of a key; `nil` if it can hold all.
  func keyFault(_ value: String) -> String? {
    type.isTime ? fault(value).map { "\($0) OR \(value) >= '10000-01-01'" } : nil
  }

  /// Returns the text of a value for PostgreSQL to read; `nil` for NULL.
  func text(of value: Value) throws(MirrorFault) -> String? {
    switch (type, value) {
    case (_, .null): return nil
    case (.boolean, .integer(0)): return "false"
    case (.boolean, .integer(1)): return "true"
    case (.bigint, .integer(let number)), (.numeric, .integer(let number)),
      (.double, .integer(let number)):
      return String(number)
    case (.double, .real(let number)), (.numeric, .real(let number)): return "\(number)"
    case (.bytea, .blob(let bytes)): return Hexadecimal.text(bytes)
    case (.text, .text(let text)), (.json, .text(let text)), (.jsonb, .text(let text)),
      (.timestamptz, .text(let text)), (.timestamp, .text(let text)), (.date, .text(let text)),
      (.uuid, .text(let text)), (.numeric, .text(let text)), (.carried, .text(let text)):
      if text.utf8.contains(0) {
        throw MirrorFault(description: "column \(name): PostgreSQL cannot hold U+0000 in a text")
      }
      if [.date, .timestamptz, .timestamp].contains(type), !Self.isISODate(text) {
        throw MirrorFault(
          description: "column \(name): “\(text.prefix(40))” does not begin as a date of ISO 8601")
      }
      return text
    default:
      throw MirrorFault(
        description: "column \(name): \(value.kind) is no value of the type \(type.rawValue)")
    }
  }

  /// Returns `true` if PostgreSQL, which has written a text, would write it again for a value, or
  /// an equal number.
  func isExact(_ value: Value, _ written: String?) -> Bool {
    let text: String?
    do { text = try self.text(of: value) } catch { return false }
    if text == written { return true }
    guard let text, let written else { return false }
    switch type {
    case .double: return Double(text) == Double(written.lowercasedASCII)
    case .numeric where affinity == .numeric:
      // `Decimal` rounds longer numbers.
      guard max(text.utf8.count, written.utf8.count) <= 38 else { return false }
      let numbers = [text, written].map {
        Decimal(string: $0, locale: Locale(identifier: "en_US_POSIX"))
      }
      return numbers[0] != nil && numbers[0] == numbers[1]
    default: return false
    }
  }

  /// Returns the value of a text written by PostgreSQL.
  func value(of text: String?) throws(MirrorFault) -> Value {
    guard let text else { return .null }
    switch type {
    case .boolean: return .integer(text == "true" ? 1 : 0)
    case .bigint: if let number = Int64(text) { return .integer(number) }
    case .double:
      if let number = Double(text.lowercasedASCII), !number.isNaN { return .real(number) }
    case .numeric where affinity == .numeric:
      if let number = Int64(text) { return .integer(number) }
      if let number = Double(text.lowercasedASCII), !number.isNaN { return .real(number) }
    case .bytea: if let bytes = Self.bytes(text) { return .blob(bytes) }
    case .text, .json, .jsonb, .timestamptz, .timestamp, .date, .uuid, .numeric,
      .carried:
      return .text(text)
    }
    throw MirrorFault(description: "column \(name): SQLite cannot hold “\(text.prefix(40))”")
  }
}

extension MirrorColumn {
  /// Returns `true` if a text begins with a year, a month and a day. PostgreSQL takes more: words
  /// such as `tomorrow`, and orders that depend on a setting.
  private static func isISODate(_ text: String) -> Bool {
    // Runs for each value.
    let year = text.utf8.prefix { (0x30...0x39).contains($0) }.count
    let rest = text.utf8.dropFirst(year).prefix(6)
    return (4...6).contains(year) && rest.count == 6
      && zip(rest, "-00-00".utf8).allSatisfy { byte, form in
        form == UInt8(ascii: "-") ? byte == form : (0x30...0x39).contains(byte)
      }
  }

  /// Reads hexadecimal digits, as `encode(…, 'hex')` writes them.
  private static func bytes(_ text: String) -> [UInt8]? {
    let digits = text.utf8.map { UInt8(hexDigit: $0) }
    guard digits.count % 2 == 0, !digits.contains(nil) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map {
      (digits[$0] ?? 0) << 4 | (digits[$0 + 1] ?? 0)
    }
  }
}

extension UInt8 {
  fileprivate init?(hexDigit: UInt8) {
    switch hexDigit {
    case 0x30...0x39: self = hexDigit - 0x30
    case 0x61...0x66: self = hexDigit - 0x61 + 10
    default: return nil
    }
  }
}

extension Value {
  /// The storage class, for messages.
  fileprivate var kind: String {
    switch self {
    case .null: "NULL"
    case .integer: "an integer"
    case .real: "a real"
    case .text: "a text"
    case .blob: "a blob"
    }
  }
}

import FerryProtocol
import Foundation

/// A type asks for a container within a column: the column has JSON.
struct IsNested: Error {}

/// One column as a decoder: for enums and wrappers of one value.
struct ColumnDecoder: Decoder, SingleValueDecodingContainer {
  let row: RecordRow
  let place: Int

  var codingPath: [any CodingKey] { [NamedKey(row.names[place])] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy: Key.Type) throws -> KeyedDecodingContainer<Key> {
    throw IsNested()
  }
  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw IsNested() }
  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

  /// Returns the column's value as any type.
  func value<T: Decodable>(_ type: T.Type) throws -> T {
    if let value = try known(type) { return value }
    let property = RecordRow.Property(place: place, type: ObjectIdentifier(type))
    if !row.nested.contains(property) {
      do { return try T(from: self) } catch is IsNested { row.nested.insert(property) }
    }
    let text = try row.text(place, as: "the JSON text of \(type)")
    do { return try NestedJSON.value(type, text) } catch {
      throw row.wrong(place, isNot: "the JSON text of \(type)")
    }
  }

  /// Returns a value of the types with a separate column form; `nil` for other types.
  func known<T>(_ type: T.Type) throws -> T? {
    if type == String.self { return try row.text(place) as? T }
    if type == Date.self { return try date() as? T }
    if type == Data.self { return try Data(bytes("bytes")) as? T }
    if type == [UInt8].self { return try bytes("bytes") as? T }
    if type == UUID.self {
      guard let id = UUID(uuidString: try row.text(place, as: "a UUID")) else {
        throw row.wrong(place, isNot: "a UUID")
      }
      return id as? T
    }
    if type == Decimal.self { return try decimal() as? T }
    if type == URL.self {
      guard let url = URL(string: try row.text(place, as: "a URL")) else {
        throw row.wrong(place, isNot: "a URL")
      }
      return url as? T
    }
    return nil
  }

  private func date() throws -> Date {
    switch row.value(place) {
    case .text(let text): if let date = DateText.date(text) { return date }
    case .integer(let seconds): return Date(timeIntervalSince1970: Double(seconds))
    case .real(let seconds) where seconds.isFinite: return Date(timeIntervalSince1970: seconds)
    default: break
    }
    throw row.wrong(place, isNot: "a date")
  }

  private func decimal() throws -> Decimal {
    switch row.value(place) {
    case .text(let text): if let decimal = DecimalText.decimal(text) { return decimal }
    case .integer(let integer): return Decimal(integer)
    // The shortest text of a real is the number as written.
    case .real(let real): if let decimal = DecimalText.decimal("\(real)") { return decimal }
    default: break
    }
    throw row.wrong(place, isNot: "a decimal number")
  }

  private func bytes(_ type: String) throws -> [UInt8] {
    guard case .blob(let bytes) = row.value(place) else { throw row.wrong(place, isNot: type) }
    return bytes
  }

  // MARK: Single values

  func decodeNil() -> Bool { row.isNull(place) }

  func decode(_ type: Bool.Type) throws -> Bool {
    switch try row.int64(place, as: "a truth value, 0 or 1") {
    case 0: return false
    case 1: return true
    default: throw row.wrong(place, isNot: "a truth value, 0 or 1")
    }
  }

  func decode(_ type: String.Type) throws -> String { try row.text(place) }
  func decode(_ type: Double.Type) throws -> Double { try row.double(place) }
  func decode(_ type: Float.Type) throws -> Float { Float(try row.double(place)) }
  func decode(_ type: Int.Type) throws -> Int { try exactly() }
  func decode(_ type: Int8.Type) throws -> Int8 { try exactly() }
  func decode(_ type: Int16.Type) throws -> Int16 { try exactly() }
  func decode(_ type: Int32.Type) throws -> Int32 { try exactly() }
  func decode(_ type: Int64.Type) throws -> Int64 { try row.int64(place) }
  func decode(_ type: UInt.Type) throws -> UInt { try exactly() }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try exactly() }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try exactly() }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try exactly() }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try exactly() }
  func decode<T: Decodable>(_ type: T.Type) throws -> T { try value(type) }

  private func exactly<T: FixedWidthInteger>() throws -> T {
    guard let integer = T(exactly: try row.int64(place)) else {
      throw row.wrong(place, isNot: "between \(T.min) and \(T.max)")
    }
    return integer
  }
}

/// The name of a column as a coding key.
struct NamedKey: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }
  init(_ name: Name) { stringValue = name.text }
  init?(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
}

import FerryProtocol
import FerrySQLite

/// The identifier of a record in a table with rows found by the key's value (SPEC.md §27).
///
/// A key of one text is the identifier itself and needs no codec. Every other key has exactly one
/// identifier, different from those of all other keys.
///
/// ```swift
/// KeyCodec.record(for: [.text("a"), .integer(7)])  // ["a",7]
/// ```
enum KeyCodec {
  /// Returns the identifier for the values of a key; `nil` for NULL, for a real number, and for more
  /// bytes than an identifier has.
  static func record(for key: [Value], limits: Limits = .standard) -> String? {
    let record: String
    switch key.count == 1 ? key[0] : .null {
    case .integer(let integer): record = String(integer)
    case .blob(let bytes):
      guard let id = bytes.withUnsafeBytes({ UniqueID(bytes: $0) }) else { fallthrough }
      record = id.description
    default:
      guard key.allSatisfy(\.isKeyPart) else { return nil }
      var json = JSONWriter(capacity: 64)
      json.array(of: key)
      record = String(decoding: json.finish(), as: UTF8.self)
    }
    return (1...limits.recordBytes).contains(record.utf8.count) ? record : nil
  }

  /// Returns the key with this identifier; `nil` if no key of so many columns has it.
  static func key(of record: String, columns count: Int, limits: Limits = .standard) -> [Value]? {
    let key = count == 1 ? single(record) ?? list(record, 1, limits) : list(record, count, limits)
    // Another spelling of the same key is another record's identifier.
    guard let key, self.record(for: key, limits: limits) == record else { return nil }
    return key
  }

  private static func single(_ record: String) -> [Value]? {
    if let integer = Int64(record) { return [.integer(integer)] }
    return UniqueID(record).map { [.blob($0.bytes)] }
  }

  private static func list(_ record: String, _ count: Int, _ limits: Limits) -> [Value]? {
    var values: [Value] = []
    var record = record
    let isRead = record.withUTF8 { bytes -> Bool in
      var reader = JSONReader(UnsafeRawBufferPointer(bytes))
      do {
        guard try reader.peek() == UInt8(ascii: "[") else { return false }
        try reader.array { (reader) throws(MalformedMessage) in
          guard values.count < count else { throw reader.malformed("another number of columns") }
          values.append(try reader.value(limits: limits))
        }
        try reader.end()
        return true
      } catch {
        return false
      }
    }
    return isRead && values.count == count ? values : nil
  }
}

extension KeyCodec {
  /// The column because of which values are no key.
  struct Fault: Equatable {
    /// The column's place in the key.
    let place: Int
    /// True if the key is too long, and the column has most of the bytes; false for another value.
    let isLength: Bool

    /// Finds the fault of values without an identifier.
    init(in key: [Value]) {
      let unusable = key.firstIndex { !$0.isKeyPart }
      let longest = key.indices.max { key[$0].byteCount < key[$1].byteCount }
      (place, isLength) = (unusable ?? longest ?? 0, unusable == nil)
    }

    init(code: Int64) {
      (place, isLength) = (Int(clamping: code.magnitude) - 1, code < 0)
    }

    /// The fault as an integer: no identifier is one.
    var code: Int64 { Int64(place + 1) * (isLength ? -1 : 1) }
  }
}

extension Value {
  /// True if the value can be a part of a key. Two reals that print alike may differ.
  fileprivate var isKeyPart: Bool {
    switch self {
    case .integer, .text, .blob: true
    case .null, .real: false
    }
  }
}

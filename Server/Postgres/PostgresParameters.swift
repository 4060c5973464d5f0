import Foundation

/// A statement's parameters in binary format, all in one contiguous buffer.
///
/// Each carries its type, NULLs too, and the statement is prepared with these types: a statement
/// must be given the same types each time. JSON goes as text behind a cast (`$1::jsonb`).
package struct PostgresParameters: Sendable, ExpressibleByArrayLiteral {
  private struct Slot {
    var offset: Int
    /// Negative for NULL.
    var length: Int
  }

  private var bytes: [UInt8]
  private var slots: [Slot] = []
  /// In order, `$1` first.
  private(set) var types: [PostgresType] = []

  package init() {
    // One byte in front, so an empty value too has an address; only NULL has none.
    bytes = [0]
  }

  package init(arrayLiteral values: PostgresValue...) {
    self.init()
    // Large parameters are not moved while they grow.
    bytes.reserveCapacity(values.reduce(64) { $0 + $1.byteCount })
    for value in values { append(value) }
  }

  package var count: Int { slots.count }

  /// Bytes of all values.
  var byteCount: Int { bytes.count }

  package mutating func append(_ value: PostgresValue) {
    switch value {
    case .int8(let value): append(value)
    case .int4(let value): append(value)
    case .int2(let value): append(value)
    case .bool(let value): append(value)
    case .float8(let value): append(value)
    case .text(let value): append(value)
    case .bytea(let value): append(value)
    case .uuid(let value): append(value)
    case .timestamptz(let value):
      append(type: .timestamptz, isNull: value == nil) {
        $0.append(bigEndian: (value ?? 0) - postgresEpochOffset)
      }
    case .encodedArray(let type, let value):
      append(type: type, isNull: value == nil) { $0.append(contentsOf: value ?? []) }
    }
  }

  /// Nil becomes a NULL of the element's type.
  package mutating func append<E: PostgresElement>(_ value: E?) {
    append(type: E.postgresType, isNull: value == nil) { value?.encode(into: &$0) }
  }

  package mutating func append<E>(_ array: PostgresArray<E>) {
    append(type: E.postgresArrayType, isNull: false) { array.encode(into: &$0) }
  }

  /// Appends text in UTF-8 without making a String.
  package mutating func append(utf8 value: some Collection<UInt8>) {
    append(type: .text, isNull: false) { $0.append(contentsOf: value) }
  }

  /// Appends a bytea.
  package mutating func append(bytes value: some Collection<UInt8>) {
    append(type: .bytea, isNull: false) { $0.append(contentsOf: value) }
  }

  /// Appends a uuid of 16 raw bytes.
  package mutating func append(uuidBytes value: some Collection<UInt8>) {
    precondition(value.count == 16, "a uuid has 16 bytes, not \(value.count)")
    append(type: .uuid, isNull: false) { $0.append(contentsOf: value) }
  }

  private mutating func append(
    type: PostgresType, isNull: Bool, _ write: (inout [UInt8]) -> Void
  ) {
    let offset = bytes.count
    if !isNull { write(&bytes) }
    types.append(type)
    slots.append(Slot(offset: offset, length: isNull ? -1 : bytes.count - offset))
  }

  /// Lends libpq's four parallel arrays.
  func withPointers<R>(
    _ body: (
      _ types: [UInt32], _ values: [UnsafePointer<CChar>?], _ lengths: [Int32], _ formats: [Int32]
    ) -> R
  ) -> R {
    bytes.withUnsafeBytes { buffer in
      let base = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
      return body(
        types.map(\.oid),
        slots.map { slot in slot.length < 0 ? nil : base.map { $0 + slot.offset } },
        slots.map { Int32(max(0, $0.length)) },
        Array(repeating: 1, count: slots.count))
    }
  }
}

/// One parameter, for writing a few in a literal; nil becomes a NULL of this type.
package enum PostgresValue: Sendable {
  case int8(Int64?)
  case int4(Int32?)
  case int2(Int16?)
  case bool(Bool?)
  case float8(Double?)
  case text(String?)
  case bytea([UInt8]?)
  case uuid(UUID?)
  /// Microseconds since 1970-01-01 00:00 UTC.
  case timestamptz(Int64?)
  /// An encoded array; write `.array(…)`.
  case encodedArray(PostgresType, [UInt8]?)

  package static func array<E>(_ array: consuming PostgresArray<E>) -> PostgresValue {
    .encodedArray(E.postgresArrayType, array.encoded())
  }

  /// About how many bytes it takes.
  fileprivate var byteCount: Int {
    switch self {
    case .text(let text): text?.utf8.count ?? 0
    case .bytea(let bytes), .encodedArray(_, let bytes): bytes?.count ?? 0
    default: 16
    }
  }

  /// Returns NULL in place of a whole array.
  package static func nullArray<E: PostgresElement>(of _: E.Type) -> PostgresValue {
    .encodedArray(E.postgresArrayType, nil)
  }
}

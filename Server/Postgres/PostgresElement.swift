import Foundation

/// A Swift type with a PostgreSQL type and array type in binary format.
package protocol PostgresElement: Sendable {
  static var postgresType: PostgresType { get }
  static var postgresArrayType: PostgresType { get }

  /// Appends the value's bytes, without the length in front.
  func encode(into bytes: inout [UInt8])

  /// Reads the value back; returns `nil` if the bytes are of another type or size.
  static func decode(_ bytes: UnsafeRawBufferPointer, of type: PostgresType) -> Self?
}

extension Array where Element == UInt8 {
  /// Appends in network byte order.
  mutating func append(bigEndian value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }

  /// Overwrites four bytes in network byte order.
  mutating func store(bigEndian value: Int32, at offset: Int) {
    withUnsafeMutableBytes {
      $0.storeBytes(of: value.bigEndian, toByteOffset: offset, as: Int32.self)
    }
  }
}

extension UnsafeRawBufferPointer {
  func bigEndian<T: FixedWidthInteger & BitwiseCopyable>(_: T.Type, at offset: Int = 0) -> T {
    T(bigEndian: loadUnaligned(fromByteOffset: offset, as: T.self))
  }

  /// Reads any of int2, int4, int8, widened.
  func integer(of type: PostgresType) -> Int64? {
    switch (type, count) {
    case (.int8, 8): bigEndian(Int64.self)
    case (.int4, 4): Int64(bigEndian(Int32.self))
    case (.int2, 2): Int64(bigEndian(Int16.self))
    default: nil
    }
  }
}

extension Int64: PostgresElement {
  package static var postgresType: PostgresType { .int8 }
  package static var postgresArrayType: PostgresType { .int8Array }
  package func encode(into bytes: inout [UInt8]) { bytes.append(bigEndian: self) }
  package static func decode(_ bytes: UnsafeRawBufferPointer, of type: PostgresType) -> Int64? {
    bytes.integer(of: type)
  }
}

extension Int32: PostgresElement {
  package static var postgresType: PostgresType { .int4 }
  package static var postgresArrayType: PostgresType { .int4Array }
  package func encode(into bytes: inout [UInt8]) { bytes.append(bigEndian: self) }
  package static func decode(_ bytes: UnsafeRawBufferPointer, of type: PostgresType) -> Int32? {
    bytes.integer(of: type).flatMap(Int32.init(exactly:))
  }
}

extension Int16: PostgresElement {
  package static var postgresType: PostgresType { .int2 }
  package static var postgresArrayType: PostgresType { .int2Array }
  package func encode(into bytes: inout [UInt8]) { bytes.append(bigEndian: self) }
  package static func decode(_ bytes: UnsafeRawBufferPointer, of type: PostgresType) -> Int16? {
    bytes.integer(of: type).flatMap(Int16.init(exactly:))
  }
}

extension Bool: PostgresElement {
  package static var postgresType: PostgresType { .bool }
  package static var postgresArrayType: PostgresType { .boolArray }
  package func encode(into bytes: inout [UInt8]) { bytes.append(self ? 1 : 0) }
  package static func decode(_ bytes: UnsafeRawBufferPointer, of type: PostgresType) -> Bool? {
    type == .bool && bytes.count == 1 ? bytes[0] != 0 : nil
  }
}

extension Double: PostgresElement {
  package static var postgresType: PostgresType { .float8 }
  package static var postgresArrayType: PostgresType { .float8Array }
  package func encode(into bytes: inout [UInt8]) { bytes.append(bigEndian: bitPattern) }
  package static func decode(_ bytes: UnsafeRawBufferPointer, of type: PostgresType) -> Double? {
    type == .float8 && bytes.count == 8 ? Double(bitPattern: bytes.bigEndian(UInt64.self)) : nil
  }
}

extension String: PostgresElement {
  package static var postgresType: PostgresType { .text }
  package static var postgresArrayType: PostgresType { .textArray }
  package func encode(into bytes: inout [UInt8]) { bytes.append(contentsOf: utf8) }
  package static func decode(_ bytes: UnsafeRawBufferPointer, of type: PostgresType) -> String? {
    type.isTextual ? String(decoding: bytes, as: UTF8.self) : nil
  }
}

extension [UInt8]: PostgresElement {
  package static var postgresType: PostgresType { .bytea }
  package static var postgresArrayType: PostgresType { .byteaArray }
  package func encode(into bytes: inout [UInt8]) { bytes.append(contentsOf: self) }
  package static func decode(_ bytes: UnsafeRawBufferPointer, of type: PostgresType) -> [UInt8]? {
    type == .bytea ? [UInt8](bytes) : nil
  }
}

extension UUID: PostgresElement {
  package static var postgresType: PostgresType { .uuid }
  package static var postgresArrayType: PostgresType { .uuidArray }
  package func encode(into bytes: inout [UInt8]) {
    withUnsafeBytes(of: uuid) { bytes.append(contentsOf: $0) }
  }
  package static func decode(_ bytes: UnsafeRawBufferPointer, of type: PostgresType) -> UUID? {
    guard type == .uuid, bytes.count == 16 else { return nil }
    return UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
  }
}

import CFerrySQLite

/// A value for one parameter of a statement, or values for several in a row.
///
/// `Optional` binds one NULL for `nil`. A type of this or another module conforms by appending
/// values:
///
/// ```swift
/// extension Point: SQLiteBindable {
///   package func bind(to parameters: inout SQLiteParameters) {
///     parameters.append(x)
///     parameters.append(y)
///   }
/// }
/// ```
@usableFromInline
package protocol SQLiteBindable {
  /// Appends the value, in the value's storage class.
  func bind(to parameters: inout SQLiteParameters)
}

/// The parameters of a statement, bound from the first to the last.
@usableFromInline
package struct SQLiteParameters {
  private let handle: OpaquePointer
  /// The number of bound values.
  private(set) var count: Int32 = 0

  init(of handle: OpaquePointer) { self.handle = handle }

  private mutating func next() -> Int32 {
    count += 1
    return count
  }

  @usableFromInline
  package mutating func append(_ value: Int64) { sqlite3_bind_int64(handle, next(), value) }

  @usableFromInline
  package mutating func append(_ value: Double) { sqlite3_bind_double(handle, next(), value) }

  @usableFromInline
  package mutating func appendNull() { sqlite3_bind_null(handle, next()) }

  /// Appends text from bytes in valid UTF-8; they are copied.
  @usableFromInline
  package mutating func append(text: UnsafeRawBufferPointer) {
    // A nil pointer would bind NULL instead of an empty text.
    let start = text.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
    ferry_bind_text(
      handle, next(), start?.assumingMemoryBound(to: CChar.self), UInt64(text.count))
  }

  /// Appends a blob; the bytes are copied.
  @usableFromInline
  package mutating func append(blob: UnsafeRawBufferPointer) {
    ferry_bind_blob(handle, next(), blob.baseAddress, UInt64(blob.count))
  }

  @inlinable
  package mutating func append(_ value: some SQLiteBindable) { value.bind(to: &self) }
}

/// Text from bytes in valid UTF-8. `[UInt8]` alone is a blob.
@usableFromInline
package struct SQLiteText<Bytes: Collection<UInt8>>: SQLiteBindable {
  @usableFromInline let bytes: Bytes

  @inlinable
  package init(_ bytes: Bytes) { self.bytes = bytes }

  @inlinable
  package func bind(to parameters: inout SQLiteParameters) {
    let isBound: Void? = bytes.withContiguousStorageIfAvailable {
      parameters.append(text: UnsafeRawBufferPointer($0))
    }
    if isBound == nil { SQLiteText<[UInt8]>(Array(bytes)).bind(to: &parameters) }
  }
}

/// One parameter for each value, in order.
@usableFromInline
package struct SQLiteList<Values: Sequence>: SQLiteBindable where Values.Element: SQLiteBindable {
  @usableFromInline let values: Values

  @inlinable
  package init(_ values: Values) { self.values = values }

  @inlinable
  package func bind(to parameters: inout SQLiteParameters) {
    for value in values { value.bind(to: &parameters) }
  }
}

extension Int64: SQLiteBindable {
  @inlinable
  package func bind(to parameters: inout SQLiteParameters) { parameters.append(self) }
}

extension Int: SQLiteBindable {
  @inlinable
  package func bind(to parameters: inout SQLiteParameters) { parameters.append(Int64(self)) }
}

/// Binds the same 64 bits as a signed integer.
extension UInt64: SQLiteBindable {
  @inlinable
  package func bind(to parameters: inout SQLiteParameters) {
    parameters.append(Int64(bitPattern: self))
  }
}

/// Binds 1 or 0.
extension Bool: SQLiteBindable {
  @inlinable
  package func bind(to parameters: inout SQLiteParameters) { parameters.append(self ? 1 : 0) }
}

extension Double: SQLiteBindable {
  @inlinable
  package func bind(to parameters: inout SQLiteParameters) { parameters.append(self) }
}

extension String: SQLiteBindable {
  @inlinable
  package func bind(to parameters: inout SQLiteParameters) {
    var text = self
    text.withUTF8 { parameters.append(text: UnsafeRawBufferPointer($0)) }
  }
}

/// Binds a blob.
extension [UInt8]: SQLiteBindable {
  @inlinable
  package func bind(to parameters: inout SQLiteParameters) {
    withUnsafeBytes { parameters.append(blob: $0) }
  }
}

extension Optional: SQLiteBindable where Wrapped: SQLiteBindable {
  @inlinable
  package func bind(to parameters: inout SQLiteParameters) {
    if let self { self.bind(to: &parameters) } else { parameters.appendNull() }
  }
}

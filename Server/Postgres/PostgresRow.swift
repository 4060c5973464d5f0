import Foundation

/// One row of a result. Columns are counted from 0.
///
/// Reading a NULL or another type than the column's throws `unexpectedResult` naming the column.
package struct PostgresRow {
  let rows: PostgresRows
  let index: Int32

  package func isNull(_ column: Int) -> Bool { rows.cell(row: index, column: column) == nil }

  /// Reads any of int2, int4 and int8, widened.
  package func int8(_ column: Int) throws(PostgresError) -> Int64 { try value(column) }
  package func int4(_ column: Int) throws(PostgresError) -> Int32 { try value(column) }
  package func int2(_ column: Int) throws(PostgresError) -> Int16 { try value(column) }
  package func bool(_ column: Int) throws(PostgresError) -> Bool { try value(column) }
  package func float8(_ column: Int) throws(PostgresError) -> Double { try value(column) }
  package func uuid(_ column: Int) throws(PostgresError) -> UUID { try value(column) }

  /// Reads text, varchar, name or json.
  package func text(_ column: Int) throws(PostgresError) -> String { try value(column) }

  /// Microseconds since 1970-01-01 00:00 UTC, of a timestamptz.
  package func timestamptz(_ column: Int) throws(PostgresError) -> Int64 {
    let cell = try cell(column)
    guard rows.columnType(column) == .timestamptz, cell.count == 8 else {
      throw mismatch(column, "a timestamptz")
    }
    return cell.bigEndian(Int64.self) + postgresEpochOffset
  }

  /// Returns a bytea's or a text's bytes, copied.
  package func bytes(_ column: Int) throws(PostgresError) -> [UInt8] { [UInt8](try cell(column)) }

  /// Lends the value's bytes in the result, of any type; no copy is made.
  package func bytes<R>(
    _ column: Int, _ body: (UnsafeRawBufferPointer) throws -> R
  ) throws -> R {
    let cell = try cell(column)
    return try withExtendedLifetime(rows) { try body(cell) }
  }

  /// Returns the 16 raw bytes of a uuid.
  package func uuidBytes(_ column: Int) throws(PostgresError) -> [UInt8] {
    let cell = try cell(column)
    guard rows.columnType(column) == .uuid else { throw mismatch(column, "a uuid") }
    return [UInt8](cell)
  }

  /// Returns the value, or `nil` if the column is NULL.
  package func ifPresent<E: PostgresElement>(
    _ column: Int, as _: E.Type = E.self
  ) throws(PostgresError) -> E? {
    guard let cell = rows.cell(row: index, column: column) else { return nil }
    return try decode(column, cell)
  }

  /// Returns the value of a column that is not NULL.
  package func value<E: PostgresElement>(
    _ column: Int, as _: E.Type = E.self
  ) throws(PostgresError) -> E {
    try decode(column, try cell(column))
  }

  /// Returns a one-dimensional array's elements, each `nil` if it is NULL.
  package func array<E: PostgresElement>(
    _ column: Int, of _: E.Type = E.self
  ) throws(PostgresError) -> [E?] {
    let cell = try cell(column)
    guard rows.columnType(column) == E.postgresArrayType, let elements = E.decodeArray(cell) else {
      throw mismatch(column, "an array of \(E.self)")
    }
    return elements
  }

  private func decode<E: PostgresElement>(
    _ column: Int, _ cell: UnsafeRawBufferPointer
  ) throws(PostgresError) -> E {
    let value = withExtendedLifetime(rows) { E.decode(cell, of: rows.columnType(column)) }
    guard let value else { throw mismatch(column, "a value for \(E.self)") }
    return value
  }

  private func cell(_ column: Int) throws(PostgresError) -> UnsafeRawBufferPointer {
    guard let cell = rows.cell(row: index, column: column) else {
      throw PostgresError(.unexpectedResult, "column \(rows.columnName(column)) is NULL")
    }
    return cell
  }

  private func mismatch(_ column: Int, _ wanted: String) -> PostgresError {
    let type = rows.columnType(column)
    return PostgresError(
      .unexpectedResult,
      "column \(rows.columnName(column)) of type \(type.oid) does not hold \(wanted)")
  }
}

extension PostgresElement {
  /// Reads `array_send`'s format; `nil` if it is not one-dimensional or an element does not fit.
  static func decodeArray(_ bytes: UnsafeRawBufferPointer) -> [Self?]? {
    guard bytes.count >= 12 else { return nil }
    let dimensions = bytes.bigEndian(Int32.self)
    if dimensions == 0 { return [] }
    guard dimensions == 1, bytes.count >= 20 else { return nil }
    let type = PostgresType(oid: bytes.bigEndian(UInt32.self, at: 8))
    let count = Int(bytes.bigEndian(Int32.self, at: 12))
    var offset = 20
    var elements: [Self?] = []
    elements.reserveCapacity(count)
    for _ in 0..<count {
      let length = Int(bytes.bigEndian(Int32.self, at: offset))
      offset += 4
      if length < 0 {
        elements.append(nil)
        continue
      }
      let slice = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + length])
      guard let element = decode(slice, of: type) else { return nil }
      elements.append(element)
      offset += length
    }
    return elements
  }
}

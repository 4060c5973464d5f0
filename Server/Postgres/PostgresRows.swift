import CFerryPostgres

/// A statement's result. Values stay in libpq's memory, and are freed with this object.
package final class PostgresRows: RandomAccessCollection, Sendable {
  // SAFETY: libpq never writes to a PGresult after handing it out, and allows reading it from any
  // thread; it is freed once, by the last owner.
  private nonisolated(unsafe) let result: OpaquePointer

  /// Rows in the result; 0 for a statement without rows.
  package let endIndex: Int
  package let columnCount: Int

  package var startIndex: Int { 0 }

  /// Takes over the result.
  init(owning result: OpaquePointer) {
    self.result = result
    endIndex = Int(PQntuples(result))
    columnCount = Int(PQnfields(result))
  }

  deinit { PQclear(result) }

  package subscript(position: Int) -> PostgresRow {
    precondition(position >= 0 && position < endIndex, "row \(position) of \(endIndex)")
    return PostgresRow(rows: self, index: Int32(position))
  }

  /// The memory of the result, in bytes: more than the values.
  package var byteCount: Int { PQresultMemorySize(result) }

  /// Returns whether a single value has more bytes.
  func hasValue(above limit: Int) -> Bool {
    let columns = Int32(columnCount)
    return indices.contains { row in
      (0..<columns).contains { Int(PQgetlength(result, Int32(row), $0)) > limit }
    }
  }

  /// Rows touched by an INSERT, UPDATE, DELETE or SELECT; 0 for other commands.
  package var affected: Int { Int(String(cString: PQcmdTuples(result))) ?? 0 }

  /// The command's tag, such as `INSERT 0 5` or `ROLLBACK`.
  package var commandTag: String { String(cString: PQcmdStatus(result)) }

  /// Returns the column's name, for messages.
  package func columnName(_ column: Int) -> String {
    PQfname(result, Int32(column)).map { String(cString: $0) } ?? "#\(column)"
  }

  package func columnType(_ column: Int) -> PostgresType {
    PostgresType(oid: PQftype(result, Int32(column)))
  }

  /// Returns the modifier of the column's type, such as the digits of a `numeric`; -1 without one.
  package func columnModifier(_ column: Int) -> Int32 { PQfmod(result, Int32(column)) }

  /// Returns the value's bytes, valid while this object lives; nil for NULL.
  func cell(row: Int32, column: Int) -> UnsafeRawBufferPointer? {
    precondition(column >= 0 && column < columnCount, "column \(column) of \(columnCount)")
    let column = Int32(column)
    let length = PQgetlength(result, row, column)
    if length == 0 && PQgetisnull(result, row, column) != 0 { return nil }
    return UnsafeRawBufferPointer(start: PQgetvalue(result, row, column), count: Int(length))
  }
}

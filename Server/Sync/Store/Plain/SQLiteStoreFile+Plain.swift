import FerryProtocol
import FerrySQLite
import FerryStoredValues

extension SQLiteStoreFile: PlainConnection {
  static var sequenceSpace: String { "space" }

  func rows<T>(
    _ statement: PlainStatement, _ values: [PlainValue], _ read: (any PlainRow) throws -> T
  ) throws -> [T] {
    try connection.rows(statement.sql, SQLiteList(values)) { try read(SQLitePlainRow(row: $0)) }
  }

  @discardableResult
  func run(_ statement: PlainStatement, _ values: [PlainValue]) throws -> Int {
    try connection.run(statement.sql, SQLiteList(values))
  }

  func run(_ statement: PlainStatement, forEach lists: [[PlainValue]]) throws {
    if connection.isInTransaction {
      for values in lists { try run(statement, values) }
    } else {
      try together { try run(statement, forEach: lists) }
    }
  }

  func together<T>(_ body: () throws -> T) throws -> T {
    try connection.transaction { try body() }
  }
}

extension SQLiteStore: PlainStore {
  func lend<T: Sendable>(
    _ use: PlainUse, for function: String,
    _ body: @escaping @Sendable (any PlainConnection) throws -> T
  ) async throws(StoreError) -> T {
    use == .writing
      ? try await write(for: function) { try body($0) }
      : try await read(for: function) { try body($0) }
  }
}

private struct SQLitePlainRow: PlainRow {
  let row: SQLiteStatement

  func isNull(_ column: Int) -> Bool { row.isNull(Int32(column)) }
  func integer(_ column: Int) -> Int64 { row.int64(Int32(column)) }
  func text(_ column: Int) -> String { row.text(Int32(column)) }
  func bytes(_ column: Int) -> [UInt8] { row.blob(Int32(column)) }
  func recordName(_ column: Int) -> StoredRecordName { row.recordName(Int32(column)) }
}

extension PlainValue: SQLiteBindable {
  func bind(to parameters: inout SQLiteParameters) {
    switch self {
    case .integer(let value): parameters.append(value)
    case .text(let value): parameters.append(value)
    case .bytes(let value): parameters.append(value)
    case .record(let value): parameters.append(StoredRecordName(value))
    case .uuid(let value): parameters.append(value)
    }
  }
}

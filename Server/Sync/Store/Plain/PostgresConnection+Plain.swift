import FerryPostgres
import FerryProtocol

extension PostgresConnection: PlainConnection {
  static var sequenceSpace: String { "(space + 0)" }

  func rows<T>(
    _ statement: PlainStatement, _ values: [PlainValue], _ read: (any PlainRow) throws -> T
  ) throws -> [T] {
    try query(PostgresStatement(statement), PostgresParameters(values)).map { try read($0) }
  }

  @discardableResult
  func run(_ statement: PlainStatement, _ values: [PlainValue]) throws -> Int {
    try query(PostgresStatement(statement), PostgresParameters(values)).affected
  }

  func run(_ statement: PlainStatement, forEach lists: [[PlainValue]]) throws {
    _ = try pipeline { pipeline in
      for values in lists {
        pipeline.add(PostgresStatement(statement), PostgresParameters(values))
      }
    }
  }

  func together<T>(_ body: () throws -> T) throws -> T { try transaction { _ in try body() } }
}

extension PostgresStore: PlainStore {
  func lend<T: Sendable>(
    _ use: PlainUse, for function: String,
    _ body: @escaping @Sendable (any PlainConnection) throws -> T
  ) async throws(StoreError) -> T {
    let isFirst = use == .authenticating
    return try await run(
      in: isFirst ? .authentication : .push, mayUseWorker: isFirst, for: function
    ) {
      try body($0)
    }
  }
}

extension PostgresRow: PlainRow {
  func integer(_ column: Int) throws -> Int64 { try int8(column) }
}

extension PostgresStatement {
  init(_ statement: PlainStatement) { self.init(statement.name, statement.sql) }
}

extension PostgresParameters {
  init(_ values: [PlainValue]) {
    self.init()
    for value in values {
      switch value {
      case .integer(let value): append(value)
      case .text(let value): append(value)
      case .bytes(let value): append(bytes: value)
      case .record(let value): append(record: value)
      case .uuid(let value): append(uuidBytes: value.bytes)
      }
    }
  }
}

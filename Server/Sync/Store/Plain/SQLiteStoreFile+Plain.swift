import FerryProtocol
import FerrySQLite
import FerryStoredValues

extension SQLiteStoreFile: PlainConnection {
  package static var sequenceSpace: String { "space" }

  package func rows<T>(
    _ statement: PlainStatement, _ values: [PlainValue], _ read: (any PlainRow) throws -> T
  ) throws -> [T] {
    try connection.rows(statement.sql, SQLiteList(values)) { try read(SQLitePlainRow(row: $0)) }
  }

  @discardableResult
  package func run(_ statement: PlainStatement, _ values: [PlainValue]) throws -> Int {
    try connection.run(statement.sql, SQLiteList(values))
  }

  package func run(_ statement: PlainStatement, forEach lists: [[PlainValue]]) throws {
    if connection.isInTransaction {
      for values in lists { try run(statement, values) }
    } else {
      try together { try run(statement, forEach: lists) }
    }
  }

  package func rows<T>(
    _ batch: PlainBatch, _ shared: [PlainValue], of keys: [[PlainValue]],
    _ read: (_ place: Int, any PlainRow) throws -> T
  ) throws -> [T] {
    try keys.enumerated().flatMap { place, key in
      try rows(batch.single, shared + key) { try read(place, $0) }
    }
  }

  package func run(_ batch: PlainBatch, _ shared: [PlainValue], of keys: [[PlainValue]]) throws {
    if keys.isEmpty { return }
    guard connection.isInTransaction else {
      return try together { try run(batch, shared, of: keys) }
    }
    let statement = try connection.statement(batch.single.sql)
    for key in keys { try statement.run(SQLiteList(shared + key)) }
  }

  package func together<T>(_ body: () throws -> T) throws -> T {
    try connection.transaction { try body() }
  }

  /// Does nothing: the file has one writer.
  package func lock(_ space: Int64) {}

  package var sliceRows: Int { slice.rows }

  package func endBlobs(before moment: Int64) throws -> Int {
    try connection.run(
      """
      DELETE FROM mission_blobs WHERE (space, mission, sha256) IN (
        SELECT space, mission, sha256 FROM mission_blobs WHERE ended < ? ORDER BY ended LIMIT ?)
      """, moment, sliceRows)
  }

  /// Runs one durable transaction that may write operations of the server's.
  func change<T>(
    _ space: Int64, now: Int64, random: UInt64, _ body: (SpaceChange) throws -> T
  ) throws -> T {
    try change(space) {
      try body(
        SpaceChange(
          connection: self, space: space, state: try spaceState(space), now: now, random: random
        ) { try self.save($0, in: space, now: now) })
    }
  }
}

extension SQLiteStore {
  package func lend<T: Sendable>(
    _ use: PlainUse, for function: String,
    _ body: @escaping @Sendable (any PlainConnection) throws -> T
  ) async throws(StoreError) -> T {
    use == .writing
      ? try await write(for: function) { try body($0) }
      : try await read(for: function) { try body($0) }
  }

  package func change<T: Sendable>(
    _ space: Int64, now: Int64, for function: String,
    _ body: @escaping @Sendable (SpaceChange) throws -> T
  ) async throws(StoreError) -> T {
    let random = makeRandom()
    let (before, answer, head) = try await spaceTurns.perform(space) {
      () async throws(StoreError) -> (SequenceNumber, T, SequenceNumber) in
      while true {
        let done = try await write(for: function) { file in
          try file.isSettled(space)
            ? (
              try file.head(of: space),
              try file.change(space, now: now, random: random, body), try file.head(of: space)
            ) : nil
        }
        if let done { return done }
        // A process has ended within a large packet.
        try await stage(for: function) { try $0.removeStagedRows(space) }
      }
    }
    if head > before { moves.publish(HeadMove(space: space, head: head)) }
    return answer
  }
}

private struct SQLitePlainRow: PlainRow {
  let row: SQLiteStatement

  func isNull(_ column: Int) -> Bool { row.isNull(Int32(column)) }
  func integer(_ column: Int) -> Int64 { row.int64(Int32(column)) }
  func text(_ column: Int) -> String { row.text(Int32(column)) }
  func bytes(_ column: Int) -> [UInt8] { row.blob(Int32(column)) }
  func flag(_ column: Int) -> Bool { row.int64(Int32(column)) != 0 }
  func recordName(_ column: Int) -> StoredRecordName { row.recordName(Int32(column)) }
}

extension PlainValue: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    switch self {
    case .integer(let value): parameters.append(value)
    case .text(let value): parameters.append(value)
    case .utf8(let value): parameters.append(SQLiteText(value))
    case .bytes(let value): parameters.append(value)
    case .flag(let value): parameters.append(value)
    case .record(let value): parameters.append(StoredRecordName(value))
    case .uuid(let value): parameters.append(value)
    }
  }
}

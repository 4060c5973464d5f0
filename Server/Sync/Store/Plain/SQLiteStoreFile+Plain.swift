import FerryProtocol
import FerrySQLite

extension SQLiteStoreFile: PlainConnection {
  package func rows<T>(
    _ statement: PlainStatement, _ values: [PlainValue], _ read: (any PlainRow) throws -> T
  ) throws -> [T] {
    try connection.rows(statement.sqlite, SQLiteList(values)) { try read(SQLitePlainRow(row: $0)) }
  }

  @discardableResult
  package func run(_ statement: PlainStatement, _ values: [PlainValue]) throws -> Int {
    try connection.run(statement.sqlite, SQLiteList(values))
  }

  package func rows<T>(
    _ batch: PlainBatch, _ shared: [PlainValue], of keys: [[PlainValue]],
    _ read: (_ place: Int, any PlainRow) throws -> T
  ) throws -> [T] {
    var found: [T] = []
    try forEach(batch, shared, of: keys) { found.append(try read($0, $1)) }
    return found
  }

  private func forEach(
    _ batch: PlainBatch, _ shared: [PlainValue], of keys: [[PlainValue]],
    _ read: (_ place: Int, any PlainRow) throws -> Void
  ) throws {
    if keys.isEmpty { return }
    let statement = try connection.statement(batch.single.sqlite)
    var shared = shared
    var count: Int64 = 0
    let most: Int64? =
      if let place = batch.rowsMax, case .integer(let most) = shared[place - 1] { most } else {
        nil
      }
    for (place, key) in keys.enumerated() {
      statement.bind(SQLiteList(shared + key))
      defer { statement.reset() }
      while try statement.step() {
        try read(place, SQLitePlainRow(row: statement))
        count += 1
        if count == most { return }
        if let size = batch.sizePlace, case .integer(let room?) = shared[1] {
          shared[1] = .integer(room - statement.int64(Int32(size)))
        }
      }
    }
  }

  package func scan(
    _ scan: PlainScan, _ values: [PlainValue], bytes: Int, _ read: (any PlainRow) throws -> Bool
  ) throws {
    let rows = try connection.statement(scan.plain.sqlite)
    defer { rows.reset() }
    rows.bind(SQLiteList(values))
    var room = bytes
    while room > 0, try rows.step() {
      room -= rows.blobBytes(Int32(scan.large)).count
      if try !read(SQLitePlainRow(row: rows)) { return }
    }
  }

  package func perform(_ steps: [PlainStep], ends: Bool) throws {
    guard connection.isInTransaction else {
      return try together { try perform(steps, ends: ends) }
    }
    for step in steps {
      switch step {
      case .one(let statement, let values, let read?): _ = try rows(statement, values, read)
      case .one(let statement, let values, nil): try run(statement, values)
      case .many(let batch, let shared, let keys, let read):
        try forEach(batch, shared, of: keys) { try read?($0, $1) }
      }
    }
  }

  package func together<T>(_ body: () throws -> T) throws -> T {
    try connection.transaction { try body() }
  }

  package func snapshot<T>(_ body: () throws -> T) throws -> T {
    connection.isInTransaction ? try body() : try connection.transaction(.deferred) { try body() }
  }

  /// Returns `true`: the file has one writer.
  package func claimPruning(of space: Int64) -> Bool { true }

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
    switch use {
    case .writing, .upkeep: try await write(for: function) { try body($0) }
    case .reading, .pulling, .authenticating: try await read(for: function) { try body($0) }
    }
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
    if head > before { heads.publish(HeadMove(space: space, head: head)) }
    return answer
  }
}

private struct SQLitePlainRow: PlainRow {
  let row: SQLiteStatement

  func isNull(_ column: Int) -> Bool { row.isNull(Int32(column)) }
  func integer(_ column: Int) -> Int64 { row.int64(Int32(column)) }
  func text(_ column: Int) -> String { row.text(Int32(column)) }
  func bytes(_ column: Int) -> [UInt8] { row.blob(Int32(column)) }
  func bytes<T>(_ column: Int, _ body: (UnsafeRawBufferPointer) throws -> T) throws -> T {
    try body(row.blobBytes(Int32(column)))
  }
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

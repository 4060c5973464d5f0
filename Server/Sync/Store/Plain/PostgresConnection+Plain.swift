import FerryPostgres
import FerryProtocol
import Foundation

extension PostgresConnection: PlainConnection {
  package func rows<T>(
    _ statement: PlainStatement, _ values: [PlainValue], _ read: (any PlainRow) throws -> T
  ) throws -> [T] {
    try query(PostgresStatement(statement), PostgresParameters(values)).map { try read($0) }
  }

  @discardableResult
  package func run(_ statement: PlainStatement, _ values: [PlainValue]) throws -> Int {
    try query(PostgresStatement(statement), PostgresParameters(values)).affected
  }

  package func rows<T>(
    _ batch: PlainBatch, _ shared: [PlainValue], of keys: [[PlainValue]],
    _ read: (_ place: Int, any PlainRow) throws -> T
  ) throws -> [T] {
    if keys.isEmpty { return [] }
    let parameters = PostgresParameters(shared, batch.columns, keys)
    return try query(PostgresStatement(batch.many), parameters).found(read)
  }

  package func scan(
    _ scan: PlainScan, _ values: [PlainValue], bytes: Int, _ read: (any PlainRow) throws -> Bool
  ) throws {
    let values = values + [.integer(Int64(bytes))]
    for row in try query(PostgresStatement(scan.bounded), PostgresParameters(values)) {
      if try !read(row) { return }
    }
  }

  package func perform(_ steps: [PlainStep], ends: Bool) throws {
    let steps = steps.filter { !$0.isEmpty }
    if steps.isEmpty { return }
    let results = try pipeline { pipeline in
      for step in steps { pipeline.add(step) }
      if ends { pipeline.commit() }
    }
    for (step, rows) in zip(steps, results) {
      switch step {
      case .one(_, _, let read?): for row in rows { try read(row) }
      case .many(_, _, _, let read?): _ = try rows.found(read)
      case .one, .many: break
      }
    }
  }

  package func together<T>(_ body: () throws -> T) throws -> T {
    try transaction { _ in try body() }
  }

  package func snapshot<T>(_ body: () throws -> T) throws -> T {
    try transaction(.snapshot) { _ in try body() }
  }

  /// The number is Ferry's own.
  private static let pruning = PostgresStatement(
    "prune_claim", "SELECT pg_try_advisory_xact_lock(738094593, hashint8($1))")

  package func claimPruning(of space: Int64) throws -> Bool {
    try query(Self.pruning, [.int8(space)])[0].bool(0)
  }

  package var sliceRows: Int { 10_000 }

  /// Citus runs it on every worker, so it has no limit.
  private static let endedBlobs = PostgresStatement(
    "mission_blobs_end", "DELETE FROM mission_blobs WHERE ended < $1")

  package func endBlobs(before moment: Int64) throws -> Int {
    try query(Self.endedBlobs, [.int8(moment)]).affected
  }
}

extension PostgresStore {
  package func lend<T: Sendable>(
    _ use: PlainUse, for function: String,
    _ body: @escaping @Sendable (any PlainConnection) throws -> T
  ) async throws(StoreError) -> T {
    let (lane, mayUseWorker): (PoolLane, Bool) =
      switch use {
      case .authenticating: (.authentication, true)
      case .pulling: (.pull, true)
      case .upkeep: (.upkeep, true)
      case .reading, .writing: (.push, false)
      }
    return try await run(in: lane, mayUseWorker: mayUseWorker, for: function) { try body($0) }
  }

  package func change<T: Sendable>(
    _ space: Int64, now: Int64, for function: String,
    _ body: @escaping @Sendable (SpaceChange) throws -> T
  ) async throws(StoreError) -> T {
    let random = makeRandom()
    let (head, answer) = try await run(for: function) { [timelines] connection in
      var written: SpaceState?
      let answer = try connection.transaction { connection in
        let state = try connection.lockedState(of: space, timelines)
        let writes = PostgresIngestWrites(space: space, now: now)
        return try body(
          SpaceChange(
            connection: connection, space: space, state: state, now: now, random: random
          ) { effects in
            if effects.isEmpty { return }
            _ = try connection.pipeline { writes.add(effects, to: &$0) }
            written = effects.space
          })
      }
      if let written { timelines.update(written, of: space) }
      return (written?.head, answer)
    }
    if let head { notify(head, of: space) }
    return answer
  }
}

extension PlainStep {
  /// True for a batch without keys, which does nothing.
  fileprivate var isEmpty: Bool {
    if case .many(_, _, let keys, _) = self { keys.isEmpty } else { false }
  }
}

extension PostgresPipeline {
  mutating func add(_ step: PlainStep) {
    switch step {
    case .one(let statement, let values, _):
      add(PostgresStatement(statement), PostgresParameters(values))
    case .many(_, _, let keys, _) where keys.isEmpty: break
    case .many(let batch, let shared, let keys, _):
      add(PostgresStatement(batch.many), PostgresParameters(shared, batch.columns, keys))
    }
  }

  mutating func add(_ steps: [PlainStep]) {
    for step in steps { add(step) }
  }
}

extension PostgresRows {
  /// Passes each row of a look-up to `read`, with the place of the key.
  func found<T>(_ read: (_ place: Int, any PlainRow) throws -> T) throws -> [T] {
    try map { row in try read(Int(try row.int8(0)) - 1, FoundRow(row: row)) }
  }
}

/// A found row, behind the place of its key.
private struct FoundRow: PlainRow {
  let row: PostgresRow

  func isNull(_ column: Int) -> Bool { row.isNull(column + 1) }
  func integer(_ column: Int) throws -> Int64 { try row.int8(column + 1) }
  func text(_ column: Int) throws -> String { try row.text(column + 1) }
  func bytes(_ column: Int) throws -> [UInt8] { try row.bytes(column + 1) }
  func bytes<T>(_ column: Int, _ body: (UnsafeRawBufferPointer) throws -> T) throws -> T {
    try row.bytes(column + 1, body)
  }
  func flag(_ column: Int) throws -> Bool { try row.bool(column + 1) }
  func recordName(_ column: Int) throws -> StoredRecordName { try row.recordName(column + 1) }
}

extension PostgresRow: PlainRow {
  package func integer(_ column: Int) throws -> Int64 { try int8(column) }
  package func flag(_ column: Int) throws -> Bool { try bool(column) }
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
      case .utf8(let value): append(utf8: value)
      case .bytes(let value): append(bytes: value)
      case .flag(let value): append(value)
      case .record(let value): append(record: value)
      case .uuid(let value?): append(uuidBytes: value.bytes)
      case .uuid(nil): append(.uuid(nil))
      }
    }
  }

  /// Appends an array for each column of the keys.
  fileprivate init(
    _ shared: [PlainValue], _ columns: [PlainBatch.Column], _ keys: [[PlainValue]]
  ) {
    self.init(shared)
    for (place, column) in columns.enumerated() {
      append(column.type, keys.map { $0[place] })
    }
  }

  private mutating func append(_ type: PlainType, _ values: [PlainValue]) {
    switch type {
    case .integer:
      var array = PostgresArray<Int64>()
      for case .integer(let value) in values { array.append(value) }
      append(whole: array, values.count)
    case .text:
      var array = PostgresArray<String>()
      for value in values {
        if case .text(let text) = value { array.append(text) }
        if case .utf8(let text) = value { array.append(utf8: text) }
      }
      append(whole: array, values.count)
    case .flag:
      var array = PostgresArray<Bool>()
      for case .flag(let value) in values { array.append(value) }
      append(whole: array, values.count)
    case .bytes:
      var array = PostgresArray<[UInt8]>()
      for value in values {
        if case .bytes(let bytes) = value { array.append(bytes: bytes) }
        if case .record(let name) = value { array.append(record: name) }
      }
      append(whole: array, values.count)
    case .uuid:
      var array = PostgresArray<UUID>()
      for case .uuid(let value?) in values { array.append(high: value.high, low: value.low) }
      append(whole: array, values.count)
    }
  }

  private mutating func append<E>(whole array: PostgresArray<E>, _ count: Int) {
    precondition(array.count == count, "a value of a key has another type than the column")
    append(array)
  }
}

extension PostgresArray<[UInt8]> {
  /// Appends a record's identifier as `records` and `operations` have it.
  mutating func append(record: Name) {
    StoredRecordName(record).withBytes { append(bytes: $0) }
  }
}

extension PostgresParameters {
  /// Appends a record's identifier as `records` and `operations` have it.
  mutating func append(record: Name) {
    StoredRecordName(record).withBytes { append(bytes: $0) }
  }
}

extension PostgresRow {
  /// Returns a record's identifier from `records` or `operations`.
  package func recordName(_ column: Int) throws -> StoredRecordName {
    try bytes(column) { StoredRecordName(bytes: $0) }
  }

  /// Returns a name stored as text.
  func name(_ column: Int) throws(PostgresError) -> Name { Name(try text(column)) }
}

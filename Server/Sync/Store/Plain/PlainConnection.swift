import FerryProtocol

/// A statement written once for both stores.
///
/// Parameters are named `$1`, `$2` … in the order of their first use: SQLite numbers named
/// parameters by this order. It contains only SQL known to both databases.
package struct PlainStatement: Sendable {
  /// Unique among all statements, at most 63 bytes.
  let name: String
  let sql: String

  init(_ name: String, _ sql: String) { (self.name, self.sql) = (name, sql) }
}

/// A parameter of such a statement; `nil` is NULL.
package enum PlainValue: Sendable {
  case integer(Int64?)
  case text(String?)
  /// Text in UTF-8.
  case utf8([UInt8])
  case bytes([UInt8])
  /// A `boolean` in PostgreSQL, 1 or 0 in SQLite.
  case flag(Bool)
  /// A record's identifier as `records` and `operations` have it.
  case record(Name)
  /// A `uuid` in PostgreSQL, sixteen bytes in SQLite.
  case uuid(UniqueID?)
}

/// A row of a result. Columns are counted from 0.
package protocol PlainRow {
  func isNull(_ column: Int) -> Bool
  func integer(_ column: Int) throws -> Int64
  func text(_ column: Int) throws -> String
  func bytes(_ column: Int) throws -> [UInt8]
  func flag(_ column: Int) throws -> Bool
  /// Returns a record's identifier from `records` or `operations`.
  func recordName(_ column: Int) throws -> StoredRecordName
}

extension PlainRow {
  func optionalInteger(_ column: Int) throws -> Int64? {
    isNull(column) ? nil : try integer(column)
  }

  func optionalText(_ column: Int) throws -> String? { isNull(column) ? nil : try text(column) }
}

/// A connection of either store, for queries rare enough to be written once.
///
/// A query of every pull or packet is written for each database.
package protocol PlainConnection {
  /// The expression by which an index in the order of a space's sequences is used.
  static var sequenceSpace: String { get }

  /// Runs a query, and passes each row to `read`.
  func rows<T>(
    _ statement: PlainStatement, _ values: [PlainValue], _ read: (any PlainRow) throws -> T
  ) throws -> [T]

  /// Runs a statement. Returns the number of changed rows.
  @discardableResult
  func run(_ statement: PlainStatement, _ values: [PlainValue]) throws -> Int

  /// Runs a statement with each of these lists of parameters.
  func run(_ statement: PlainStatement, forEach lists: [[PlainValue]]) throws

  /// Runs a look-up of many keys. `read` gets the place of the key, too; rows are in the order of
  /// the keys.
  func rows<T>(
    _ batch: PlainBatch, _ shared: [PlainValue], of keys: [[PlainValue]],
    _ read: (_ place: Int, any PlainRow) throws -> T
  ) throws -> [T]

  /// Runs a statement about many keys, all in one transaction.
  func run(_ batch: PlainBatch, _ shared: [PlainValue], of keys: [[PlainValue]]) throws

  /// Runs `body` in one transaction.
  func together<T>(_ body: () throws -> T) throws -> T

  /// Keeps other writers of a space away until the transaction ends.
  func lock(_ space: Int64) throws

  /// Rows that a short transaction changes at most.
  var sliceRows: Int { get }

  /// Forgets content whose use ended before `moment`, of any space: ``sliceRows`` entries, or all.
  /// Returns their number.
  func endBlobs(before moment: Int64) throws -> Int
}

extension SyncStore {
  /// Runs `body` on a connection.
  func plain<T: Sendable>(
    _ use: PlainUse, for function: String = #function,
    _ body: @escaping @Sendable (any PlainConnection) throws -> T
  ) async throws(StoreError) -> T {
    try await lend(use, for: function, body)
  }

  /// Runs one transaction that may write operations of the server's in a space.
  func change<T: Sendable>(
    _ space: Int64, now: Int64, _ function: String = #function,
    _ body: @escaping @Sendable (SpaceChange) throws -> T
  ) async throws(StoreError) -> T {
    try await change(space, now: now, for: function, body)
  }

  /// Repeats a short transaction until it changes fewer rows than one may: those of other spaces go
  /// between two of them. Returns the number of all rows.
  ///
  /// - Parameters:
  ///   - function: The caller, whose name the spans of traces have.
  ///   - body: Returns the number of changed rows.
  @discardableResult
  func inSlices(
    for function: String = #function,
    _ body: @escaping @Sendable (any PlainConnection) throws -> Int
  ) async throws(StoreError) -> Int {
    var count = 0
    while true {
      let (changed, isLast) = try await plain(.writing, for: function) { connection in
        let changed = try connection.together { try body(connection) }
        return (changed, changed < connection.sliceRows)
      }
      count += changed
      if isLast { return count }
    }
  }
}

/// A transaction that may write operations of the server's in a space.
package struct SpaceChange {
  let connection: any PlainConnection
  let space: Int64
  /// The space before the change, under its lock.
  let state: SpaceState
  /// The wall clock, milliseconds since 1970.
  let now: Int64
  /// For the identifiers of the operations.
  let random: UInt64
  /// Writes the rows of operations.
  let save: (IngestEffects) throws -> Void
}

/// The purpose of a connection.
package enum PlainUse: Sendable {
  case reading
  /// Reading for a device that syncs.
  case pulling
  case writing
  /// Reading before a request is admitted.
  case authenticating
}

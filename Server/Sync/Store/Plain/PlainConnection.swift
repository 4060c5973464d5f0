import FerryProtocol

/// A connection of either store, with the primitives over which all shared SQL runs.
package protocol PlainConnection {
  /// Runs a query, and passes each row to `read`.
  func rows<T>(
    _ statement: PlainStatement, _ values: [PlainValue], _ read: (any PlainRow) throws -> T
  ) throws -> [T]

  /// Runs a statement. Returns the number of changed rows.
  @discardableResult
  func run(_ statement: PlainStatement, _ values: [PlainValue]) throws -> Int

  /// Runs a look-up of many keys. `read` gets the place of the key, too; rows are in the order of
  /// the keys.
  func rows<T>(
    _ batch: PlainBatch, _ shared: [PlainValue], of keys: [[PlainValue]],
    _ read: (_ place: Int, any PlainRow) throws -> T
  ) throws -> [T]

  /// Runs a query whose rows may be large, and passes rows to `read` until it returns `false`, or
  /// the rows before have so many bytes.
  func scan(
    _ scan: PlainScan, _ values: [PlainValue], bytes: Int, _ read: (any PlainRow) throws -> Bool
  ) throws

  /// Runs statements in order, all in one transaction. PostgreSQL needs one round trip.
  ///
  /// - Parameter ends: Whether they are the last ones of the transaction under way, which may then
  ///   be committed in the same round trip.
  func perform(_ steps: [PlainStep], ends: Bool) throws

  /// Runs `body` in one transaction.
  func together<T>(_ body: () throws -> T) throws -> T

  /// Runs `body` on one unchanging view of the data.
  func snapshot<T>(_ body: () throws -> T) throws -> T

  /// Prevents the pruning of a space by other servers until the transaction ends. Returns `false`
  /// if another one prunes it now.
  func claimPruning(of space: Int64) throws -> Bool

  /// Rows that a short transaction changes at most.
  var sliceRows: Int { get }

  /// Forgets content whose use ended before `moment`, of any space: ``sliceRows`` entries, or all.
  /// Returns their number.
  func endBlobs(before moment: Int64) throws -> Int
}

extension PlainConnection {
  /// Runs statements in order, all in one transaction.
  func perform(_ steps: [PlainStep]) throws { try perform(steps, ends: false) }

  /// Prevents other writers of a space until the transaction ends.
  func lock(_ space: Int64) throws { try run(spaceLock, [.integer(space)]) }

  /// Runs a statement about many keys, all in one transaction.
  func run(_ batch: PlainBatch, _ shared: [PlainValue], of keys: [[PlainValue]]) throws {
    try perform([.many(batch, shared, of: keys)])
  }
}

private let spaceLock = PlainStatement(
  "space_lock", "SELECT 1 FROM spaces WHERE id = $1", .waiting)

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
  /// Writing beside all requests.
  case upkeep
  /// Reading before a request is admitted.
  case authenticating
}

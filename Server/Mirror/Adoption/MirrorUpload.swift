import FerryPostgres

/// An upload of the former rows of adopted tables.
struct MirrorUpload: Sendable {
  let parts: MirrorParts

  private var intake: MirrorIntake { MirrorIntake(parts: parts) }
  private var pool: any MirrorConnections { parts.pool }
  private var ledger: MirrorLedger { parts.ledger }
  /// Parents before their children.
  private var sql: [MirrorSQL] { parts.sql }

  /// Uploads slice by slice until each row is in the space, or recorded as missing there.
  ///
  /// - Parameter onProgress: gets the progress of each table after each slice.
  func run(_ onProgress: @Sendable ([AdoptionProgress]) -> Void) async throws {
    let reader = parts.sides.reader
    let (ledger, slices) = (ledger, MirrorSlices(ledger: ledger, sql: sql, reader: reader))
    var rows = MirrorSlices.rowsMax
    var hasMore = true
    while hasMore {
      try await intake.readPresent()
      onProgress(try await pool.run { try ledger.adopted($0) })
      let count = rows
      do {
        hasMore = try await pool.run { try slices.captureNext(count, $0) }
        rows = min(MirrorSlices.rowsMax, count * 2)
      } catch let error as PostgresError where error.isWait {
        // A smaller slice blocks programs less while it waits for another one.
        rows = max(1, count / 10)
        try await pool.pause(.milliseconds(50))
      }
    }
    try await intake.readPresent()
    onProgress(try await pool.run { try ledger.adopted($0) })
    _ = try await retry(most: .max)
  }

  /// Rows retried at once, while programs write.
  static let retryMax: Int64 = 1_000

  /// Retries rows missing in the space, as long as this helps: one may need another one.
  ///
  /// - Returns: `false` if a program has locked one of them for too long.
  func retry(most: Int64 = Self.retryMax) async throws -> Bool {
    let (ledger, reader) = (ledger, parts.sides.reader)
    let unfilled = try await parts.unfilledViews()
    let sql = sql.filter { !unfilled.contains($0.table.name) }
    try await forgetChanges()
    var last = Int64.max
    while true {
      let count: Int64
      do {
        count = try await pool.run { connection in
          try connection.transaction { try ledger.unsent.retry(sql, most: most, reader, $0) }
        }
      } catch let error as PostgresError where error.isWait {
        return false
      }
      try await intake.readPresent()
      guard count > 0, count < last else { return true }
      last = count
    }
  }

  /// Forgets what the space lacks of unsent rows, if there are none any more.
  private func forgetChanges() async throws {
    let hasChanges = try await parts.replica.read { try UnsentChanges(database: $0).hasAny() }
    guard hasChanges else { return }
    let ledger = ledger
    if try await pool.run({ try ledger.unsent.hasAny($0) }) { return }
    try await parts.replica.write { try UnsentChanges(database: $0).forgetAll() }
  }
}

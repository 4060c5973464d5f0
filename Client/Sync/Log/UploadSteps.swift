import FerryProtocol
import FerrySQLite

/// Operations of upload-only tables after a failed upload (SPEC.md §17).
///
/// - Undelivered operations are marked and stay in the queue: the server may have them, and only
///   its answer was lost. The pull before the next push shows the answer.
/// - Operations that have not arrived by then leave the queue, so everything else continues. When
///   the user retries them, they return to the queue's end, with their identifiers.
/// - Operations rejected by the server go to the quarantine like all others, and return in the same
///   way.
///
/// The driver of ``UploadQueue``, which decides which operations leave and return together.
struct UploadSteps {
  private static let followsText = "it follows a change that failed"

  let failedUploads: FailedUploads
  let operations: OperationLog
  let tables: LocalTables
  let answers: QuarantineAnswers

  private var connection: SQLiteConnection { failedUploads.connection }
  private var quarantine: QuarantineTable { answers.quarantine }
  private var packets: PacketTable { operations.packets }
  private var queue: OperationTable { operations.queue }

  /// Returns the unconfirmed state of records, by table and record; `nil` for all tables.
  func states(of table: Name?, limit: Int) throws -> [UploadState] {
    try failedUploads.states(of: table, limit: limit).map { state in
      guard state.key.record.isEmpty else { return state }
      var state = state
      state.batch = try queue.batch(state.identifier)
      return state
    }
  }

  // MARK: Failing

  /// Marks operations up to this place as failed: the sync that should have sent them, or had made
  /// a packet of them, failed.
  func markFailed(through order: Int64, _ detail: String) throws {
    let tracked = try tables.tracked.uploads(automatic: false)
    if tracked.isEmpty { return }
    try connection.transaction {
      let first = try packets.lastConfirmedOrder() + 1
      let last = max(order, try packets.lastFrozenOrder())
      guard first <= last else { return }
      let failed = try failedUploads.queue().failed(in: first...last, of: tracked)
      let count = try failedUploads.mark(failed, detail)
      if count > 0 {
        try tables.log(
          "unsent", "not delivered: \(count.counted("operation")) of upload-only tables")
      }
    }
  }

  // MARK: Before a push

  /// Removes failed operations from the queue unless the pull before has shown their arrival, and
  /// returns automatic ones to it.
  func prepare() throws {
    guard try !tables.tracked.uploads().isEmpty || failedUploads.hasMarks() else { return }
    try connection.transaction {
      try withdrawFailed()
      try withholdFollowers()
    }
    let automatic = try tables.tracked.uploads(automatic: true)
    for entry in try quarantine.entries(within: automatic) {
      try answers.retry(entry, changing: [])
    }
    guard try failedUploads.hasUnsent() else { return }
    try connection.transaction { try requeueUnsent { automatic.contains($0.table) } }
  }

  private func withdrawFailed() throws {
    try failedUploads.removeMarks(through: packets.lastConfirmedOrder())
    guard try failedUploads.hasMarks() else { return }
    let first = try failedUploads.firstMarkedPacket()
    try withhold(failedUploads.marked())
    try failedUploads.removeMarks()
    if let first { try closeGaps(from: first) }
  }

  /// Removes later operations on records with a failed one from the queue, unless they are in a
  /// packet.
  func withholdFollowers() throws {
    let tracked = Set(try tables.tracked.uploads())
    guard !tracked.isEmpty else { return }
    // Mostly no record with a failed operation is in the queue, and the queue need not be loaded.
    let failed = try failedUploads.recordsWithFollowers()
    guard !failed.isEmpty else { return }
    let followers = try failedUploads.queue().followers(
      of: failed, after: packets.lastFrozenOrder(), of: tracked)
    try withhold(followers.map { ($0, Self.followsText) })
  }

  /// Moves operations out of the queue, with the reasons.
  private func withhold(_ failed: [(order: Int64, detail: String)]) throws {
    if failed.isEmpty { return }
    try operations.rememberClock()
    try failedUploads.withhold(failed)
  }

  /// Closes the gaps in packets after the loss of operations.
  private func closeGaps(from number: Int64) throws {
    let rows = try packets.current().filter { $0.number >= number }
    let gaps = PacketGaps(
      in: try rows.map { row in
        PacketGaps.Packet(
          number: row.number, dependency: row.dependency,
          operations: try operations.operations(of: row).map(\.id))
      })
    for change in gaps.changes { try packets.perform(change) }
    // Operations that cancel each other out are left in no packet.
    for row in rows where gaps.changes.contains(.remove(row.number)) {
      try queue.forget(row.orders)
    }
    try connection.run("UPDATE ferry_replica SET tail = ?", gaps.tail)
  }

  // MARK: Trying again

  /// Makes the next sync send failed operations. Returns the number of their records.
  func retry(table: Name?, record: Name?) throws -> Int {
    let before = try failedUploads.count()
    if let table, let record, try failedUploads.count(table, record) == 0 {
      throw ReplicaError.notFound(.failedChange(table: table, record: record))
    }
    let isChosen = { (key: RecordKey) in
      (table == nil || key.table == table) && (record == nil || key.record == record)
    }
    try connection.transaction {
      try failedUploads.removeMarks(where: isChosen)
      try withholdFollowers()
    }
    for entry in try quarantine.uploads(table, record) {
      try answers.retry(entry, changing: [])
    }
    try connection.transaction { try requeueUnsent(isChosen) }
    return try max(0, before - failedUploads.count())
  }

  /// Makes the next sync send failed operations of a table from now on.
  func release(of table: Name) throws {
    try failedUploads.removeMarks { $0.table == table }
    try requeueUnsent { $0.table == table }
  }

  /// Moves unsent operations on these records, and those that go with them, to the queue's end with
  /// their identifiers. The server may know them, so an insert and its delete do not cancel each
  /// other out.
  private func requeueUnsent(_ isChosen: (RecordKey) -> Bool) throws {
    let chosen = try failedUploads.unsent().returning { isChosen($0.key) }
    try operations.rememberClock()
    for order in chosen { try failedUploads.requeue(order, .former) }
  }
}

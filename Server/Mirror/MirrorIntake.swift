import FerryPostgres
import FerrySyncClient

/// The intake of captured writes from PostgreSQL into the space.
struct MirrorIntake: Sendable {
  let parts: MirrorParts

  /// Applies the writes made by now: programs may write faster than this runs. If the reader of the
  /// log is behind, the writes travel in slices. Returns `true` if there were any.
  ///
  /// - Throws: ``MirrorStopped`` if writes are not captured.
  @discardableResult
  func readPresent() async throws -> Bool {
    guard let reader = parts.sides.reader else { return try await readCaptured() }
    let wait = reader.beginWait()
    var isAny = false
    while true {
      let result = await reader.result(of: wait)
      try Task.checkCancellation()
      // A failure of the reader stops no write that is captured already.
      if try await readCaptured() { isAny = true }
      if try result.get() { return isAny }
    }
  }

  /// Applies the writes captured by now.
  private func readCaptured() async throws -> Bool {
    let (stops, last) = try await parts.pool.run {
      (try parts.ledger.stops($0), try parts.ledger.lastCaptured($0))
    }
    // Later writes may rest on unrecorded ones.
    if !stops.isEmpty { throw MirrorStopped(name: parts.sides.configuration.name, stops: stops) }
    guard last > 0 else {
      try await sendRead()
      return false
    }
    var isAny = false
    repeat {
      guard try await readSome() else { return isAny }
      isAny = true
    } while try await parts.pool.run { try parts.ledger.hasCaptured(through: last, $0) }
    return isAny
  }

  /// Applies some captured writes to the space. Returns `true` if there were any.
  private func readSome() async throws -> Bool {
    try await sendRead()
    try await parts.pool.run { try parts.ledger.forgetAnswers(parts.sql, $0) }
    let captured = try await parts.pool.run { try parts.ledger.captured($0) }
    guard !captured.writes.isEmpty else { return false }
    try await MirrorRenumbering(parts: parts).separate(captured.writes)
    let failures = try await apply(captured)
    parts.sides.tally.add(rejected: failures.count)
    for failure in failures {
      let key = failure.write.key.map { $0 ?? "NULL" }.joined(separator: ", ")
      parts.log("rejected", "\(failure.write.table) \(key): \(failure.reason)")
    }
    try await sendRead()
    return true
  }

  /// Applies each transaction separately: the space rejects a transaction of the replica as a
  /// whole.
  private func apply(_ captured: CapturedWrites) async throws -> [FailedWrite] {
    let transactions = captured.transactions
    var failed: [FailedWrite] = []
    for (place, transaction) in transactions.enumerated() {
      do {
        failed += try await write(transaction)
      } catch let error where error.isTooManyWrites {
        return try await failed + applyTogether(transaction)
      } catch let error as ReplicaError where error.isConstraint && !captured.isPart {
        // A transaction that wrote later may have the parent: some foreign keys are checked at
        // commit.
        let rest = transactions[place...].flatMap(\.writes)
        return try await failed + applyTogether(CapturedWrites(writes: rest))
      }
    }
    return failed
  }

  private func applyTogether(_ captured: CapturedWrites) async throws -> [FailedWrite] {
    do {
      return try await write(captured)
    } catch let error where error.isTooManyWrites {
      guard let half = captured.half else {
        // The deletes of a parent's children come later: then it has no more of them.
        return try await parts.replica.write {
          try MirrorTaking(file: parts.file, database: $0).postpone(captured)
        }
      }
      return try await applyTogether(half)
    } catch let error as ReplicaError where error.isConstraint && !captured.isPart {
      // A foreign key fails at the end of the transaction: it does not say for which write.
      parts.log("retry", "\(error)")
    }
    let transactions = captured.transactions
    guard transactions.count == 1 else {
      var failed: [FailedWrite] = []
      for transaction in transactions { failed += try await applyTogether(transaction) }
      return failed
    }
    return try await write(captured, checksEach: true)
  }

  private func write(
    _ captured: CapturedWrites, checksEach: Bool = false
  ) async throws -> [FailedWrite] {
    var returns: [CapturedWrite] = []
    while true {
      do {
        return try await write(captured, checksEach: checksEach, after: returns, isLast: false)
      } catch let held as HeldWrites {
        let more = try await MirrorHolders(parts: parts).returns(for: held.rows)
        if more.isEmpty { break }
        returns += more
      }
    }
    return try await write(captured, checksEach: checksEach, after: returns, isLast: true)
  }

  /// - Parameters:
  ///   - returns: writes before: records of devices that give way.
  ///   - isLast: whether rows stay unsent if other records have their unique values.
  /// - Throws: ``HeldWrites``.
  private func write(
    _ captured: CapturedWrites, checksEach: Bool, after returns: [CapturedWrite], isLast: Bool
  ) async throws -> [FailedWrite] {
    try await parts.replica.writeMarked { database, marks in
      let taking = MirrorTaking(
        file: parts.file, database: database, marks: marks, numbers: parts.sides.numbers,
        age: parts.sides.age,
        refused: try parts.file.refusedRows(in: captured.writes, database.connection))
      var failed: [FailedWrite] = []
      try parts.sides.taking(database) {
        failed = try taking.apply(captured, after: returns, checksEach: checksEach)
        let held = isLast ? [] : heldRows(failed, beside: returns)
        if !held.isEmpty { throw HeldWrites(rows: held) }
      }
      return failed
    }
  }

  /// Returns the failed rows of adopted tables whose holders have not given way yet.
  private func heldRows(
    _ failed: [FailedWrite], beside returns: [CapturedWrite]
  ) -> [HeldRow] {
    failed.compactMap { failure in
      let write = failure.write
      guard let holder = failure.holder,
        parts.file.plan.table(write.table)?.adoption != nil,
        !returns.contains(where: { $0.table == write.table && $0.key == holder })
      else { return nil }
      return HeldRow(table: write.table, key: write.key, holder: holder)
    }
  }

  /// Sends the file's writes, and makes PostgreSQL forget the space's writes.
  ///
  /// Nothing is pulled before all captured writes are applied: the programs have not seen it.
  private func sendRead() async throws {
    var read = try await parts.replica.read { try parts.file.read($0) }
    guard !read.isEmpty else { return }
    try await parts.replica.send()
    // They may follow what the server has from a copy of the file.
    while try await parts.replica.status().pending > 0 { try await parts.replica.sync() }
    read.refused = try await parts.replica.read {
      try parts.file.refused($0.connection, withAwaited: true).rows
    }
    let numbers = parts.sides.numbers
    try await parts.pool.run { [read] in try parts.ledger.remove(read, numbers: numbers, $0) }
    try await parts.replica.write { try parts.file.forgetRead($0) }
  }
}

extension LogReader {
  /// Waits for a slice; see ``reaches(_:)``.
  fileprivate func result(of wait: LogWait) async -> Result<Bool, any Error> {
    do {
      return .success(try await reaches(wait))
    } catch {
      return .failure(error)
    }
  }
}

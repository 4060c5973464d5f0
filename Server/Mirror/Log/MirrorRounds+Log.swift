import FerryPostgres

/// The capture from PostgreSQL's log, in the rounds of a mirror.
extension MirrorRounds {
  /// Makes the slot if it is missing, and the reader use the tables of a plan. Returns `true` if
  /// writes may be missing.
  func readLog(_ plan: MirrorPlan, isAdopting: Bool) async throws -> Bool {
    guard let reader = sides.reader else { return false }
    let (configuration, number) = (configuration, ledger.number)
    let log = try await pool.run { connection in
      let log = try MirrorLog.makeSlot(number, connection)
      // The adoption may have been cut short before.
      if isAdopting {
        try TableAdoption(configuration).storeLast(of: plan, number, connection)
      }
      return log
    }
    guard let log else {
      throw MirrorFault(
        description: "the database has no log of mirror \(configuration.name): remove the mirror, "
          + "and make it again")
    }
    reader.use(logged(plan, isAdopting: isAdopting))
    return log.compares
  }

  /// Returns `true` if writes may be missing in the log since the last round.
  func lacksLogged() async throws -> Bool {
    guard sides.reader != nil else { return false }
    let number = ledger.number
    return try await pool.run { connection in
      guard let log = try MirrorLog(number, connection) else { return false }
      return try log.compares || !log.isPublished(connection)
    }
  }

  /// Makes this round publish the tables again if an administrator has dropped the publication, and
  /// perhaps made another one. PostgreSQL reads former changes without it, so the slot begins again
  /// as well.
  func replaceDroppedPublication() async throws {
    guard let reader = sides.reader else { return }
    let ledger = ledger
    let isDropped = try await pool.run { connection in
      guard let log = try MirrorLog(ledger.number, connection) else { return false }
      if log.isOfGroup {
        return try MirrorGroupTables(number: -log.number)
          .replaceDroppedPublication(pausing: reader, connection)
      }
      if try log.isPublished(connection) { return false }
      try reader.pause()
      try log.release(connection)
      try log.forgetPublication(connection)
      try ledger.forgetLayout(connection)
      return true
    }
    if isDropped { sides.log("publication", "it was dropped, so all rows are compared") }
  }

  /// Compares all rows, because the log lacks writes of programs. A row changed in the space, too,
  /// gets the space's values. All others are the programs'.
  func compareLogged(_ file: MirrorFile) async throws {
    sides.log("compare", "PostgreSQL's log may lack writes of programs")
    let log = try await presentLog()
    // A captured insert may be of a row that is gone.
    try await MirrorIntake(parts: parts(file)).readPresent()
    _ = try await MirrorComparison(parts: parts(file)).compare(
      repairing: .space, withCaptured: true, sparesNoted: true)
    // A gap since then has to be compared again.
    try await pool.run { try log?.recordComparison($0) }
  }

  /// Makes PostgreSQL keep no log for a stopped mirror: the way out compares all rows anyway. The
  /// other mirrors of a group need the log.
  func releaseLog() async throws {
    guard let reader = sides.reader, configuration.group == nil else { return }
    let number = ledger.number
    try await pool.run { connection in
      try reader.pause()
      guard let log = try MirrorLog(number, connection), try log.slotState(connection) != nil
      else { return }
      try log.release(connection)
    }
  }

  /// Runs a part of a round, and releases the log if the mirror stops.
  func releasingLog<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch let stopped as MirrorStopped {
      do {
        try await releaseLog()
      } catch {
        sides.log(
          "error", "PostgreSQL keeps the log for the stopped mirror until the next start: \(error)")
      }
      throw stopped
    }
  }

  /// Ends the stops after a comparison of all rows.
  ///
  /// - Parameter log: the log as before the comparison; `nil` if triggers capture.
  func resume(_ log: MirrorLog?) async throws {
    let ledger = ledger
    try await pool.run { connection in
      try ledger.resume(connection)
      try log?.recordComparison(connection)
    }
  }

  /// Waits until the reader of a group has captured all former writes: some may stop the mirror again.
  func catchUpStopped() async throws {
    guard let reader = sides.reader, configuration.group != nil else { return }
    let wait = reader.beginWait()
    while try await !reader.reaches(wait) { try Task.checkCancellation() }
  }

  /// Returns the log as it is now; `nil` if triggers capture.
  func presentLog() async throws -> MirrorLog? {
    guard sides.reader != nil else { return nil }
    let number = ledger.number
    return try await pool.run { try MirrorLog(number, $0) }
  }
}

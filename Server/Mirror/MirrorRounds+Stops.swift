import FerryPostgres

/// Stops of a mirror, and the displayed figures.
extension MirrorRounds {
  func figures(isStopped: Bool) async throws -> Mirror.Figures {
    let number = ledger.number
    let waiting = try await waitingRows().count
    return try await pool.run { connection in
      let row = try connection.query(
        PostgresStatement(
          "mirror_figures",
          """
          SELECT (SELECT count(*) FROM ferry_mirror.unsent WHERE mirror = $1),
            (SELECT count(*) FROM ferry_mirror.deferred WHERE mirror = $1)
          """), [.int8(number)]
      ).first
      return Mirror.Figures(
        unsent: try row?.int8(0) ?? 0, deferred: (try row?.int8(1) ?? 0) + Int64(waiting),
        isStopped: isStopped)
    }
  }

  /// Returns rows of the space that the mirror's own file cannot hold, and so the tables neither.
  /// An example is the second one of two rows with one unique value.
  func waitingRows() async throws -> [DeferredRow] {
    guard try await replica.status().deferred > 0 else { return [] }
    let waiting = try await replica.waitingChanges(limit: Int(MirrorLedger.deferredMax))
    return waiting.filter { $0.dependency == nil }.map {
      DeferredRow(table: $0.key.table.text, key: [$0.key.record.text], reason: $0.reason)
    }
  }

  /// Records in PostgreSQL if the tables' definitions are the reason for the end of a round.
  func recordStop(_ error: (any Error)?) async throws {
    let (ledger, error) = (ledger, error as? PostgresError)
    let fault = error?.isAboutDefinition == true ? error?.message : nil
    try await pool.run { try ledger.store(fault: fault, $0) }
  }

  func checkStops() async throws {
    let (ledger, name) = (ledger, configuration.name)
    let stops = try await pool.run { try ledger.stops($0) }
    if !stops.isEmpty { throw MirrorStopped(name: name, stops: stops) }
  }
}

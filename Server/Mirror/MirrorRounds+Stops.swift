import FerryPostgres

/// Stops of a mirror, and the figures that it shows.
extension MirrorRounds {
  func figures(isStopped: Bool) async throws -> Mirror.Figures {
    let number = ledger.number
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
        unsent: try row?.int8(0) ?? 0, deferred: try row?.int8(1) ?? 0, isStopped: isStopped)
    }
  }

  /// Notes in PostgreSQL whether the tables' definitions are the reason for the end of a round.
  func note(_ error: (any Error)?) async throws {
    let (ledger, error) = (ledger, error as? PostgresError)
    let fault = error?.isAboutDefinition == true ? error?.message : nil
    try await pool.run { try ledger.note(fault: fault, $0) }
  }

  func checkStops() async throws {
    let (ledger, name) = (ledger, configuration.name)
    let stops = try await pool.run { try ledger.stops($0) }
    if !stops.isEmpty { throw MirrorStopped(name: name, stops: stops) }
  }
}

import FerryPostgres
import FerryProtocol
import FerrySyncClient

/// Stops of a mirror, and retries of unsent rows.
extension MirrorRounds {
  /// Looks at the tables in a part of a round, at most.
  private static let looksMax = 3

  /// Runs a part of a round, and again if a table or a right may have changed since the last look: the
  /// mirror follows it, or stops for good.
  func lookingAgain<Value>(
    _ state: inout State, _ body: (inout State) async throws -> Value
  ) async throws -> Value {
    for _ in 1..<Self.looksMax {
      do {
        return try await body(&state)
      } catch  where error.mayBeFollowed {
        // A table may change just after a first look.
        if state.file == nil, try await !hasOtherDefinitions() { throw error }
        state = State()
      }
    }
    return try await body(&state)
  }

  /// Records in PostgreSQL if the tables' definitions, or a missing right, are the reason for the
  /// end of a round.
  func recordStop(_ error: (any Error)?) async throws {
    let (ledger, error) = (ledger, error as? PostgresError)
    let isLasting = error.map { $0.isAboutDefinition || $0.isAboutRights } ?? false
    let fault = isLasting ? error?.message : nil
    try await pool.run { try ledger.store(fault: fault, $0) }
  }

  /// Creates and tracks the missing tables of adopted ones in the mirror's file.
  func trackAdopted() async throws {
    let schema = try await replica.pulledSchema()
    let tracked = Set(try await replica.status().tables)
    let missing = configuration.adoptions.keys.map { Name($0) }.sorted().filter {
      !tracked.contains($0) && schema.tables[$0]?.definition != nil
    }
    if missing.isEmpty { return }
    try await replica.write { try MirrorFile.createTables(missing, of: schema, $0) }
    try await replica.track(missing)
  }

  /// - Parameter followed: tables whose stop ends with a followed change.
  func checkStops(except followed: [Name]) async throws {
    let (ledger, name) = (ledger, configuration.name)
    let stops = try await pool.run { try ledger.stops($0) }
      .filter { stop in !followed.contains { $0.text == stop.table } }
    if !stops.isEmpty { throw MirrorStopped(name: name, stops: stops) }
  }

  /// Makes unsent rows due for a retry after a change of the space's schema. Returns `true` if the
  /// schema has changed.
  func allowsRetry(_ file: MirrorFile, _ state: inout State) async throws -> Bool {
    guard let version = state.schema, version != state.triedSchema else { return false }
    // A former schema may have refused these. They are recorded first.
    let refused = try await replica.read { try file.refused($0.connection, withAwaited: true) }
    guard refused.entries.isEmpty && refused.rows.isEmpty else { return false }
    let ledger = ledger
    let isOther = try await pool.run { try ledger.unsent.allowRetry(withSchema: version, $0) }
    state.triedSchema = version
    return isOther
  }

  func hasUnsent() async throws -> Bool {
    let ledger = ledger
    return try await pool.run { try ledger.unsent.hasAny($0) }
  }
}

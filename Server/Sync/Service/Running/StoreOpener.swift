import FerryProtocol

/// The opening of the store named by a configuration. It waits for an unavailable database: when a
/// whole machine starts, the server is often there first.
package struct StoreOpener: Sendable {
  let location: StoreLocation
  let limits: Limits
  let quotas: Quotas
  /// Connections to a database.
  let connections: Int
  /// True if a store is made if there is none.
  let createsIfMissing: Bool
  private let patience: Duration
  private let clock: ServiceClock
  let log: ServiceLog

  /// The longest pause between two attempts.
  static let pauseMax = Duration.seconds(2)

  package init(_ configuration: FerryServerConfiguration) {
    self.init(
      configuration.store, limits: configuration.limits, quotas: configuration.quotas,
      connections: configuration.databaseConnections, patience: configuration.startWait,
      clock: configuration.clock, log: configuration.log)
  }

  /// - Parameters:
  ///   - patience: The longest wait for an unavailable database.
  ///   - createsIfMissing: Whether a store is made if there is none.
  package init(
    _ location: StoreLocation, limits: Limits = .standard, quotas: Quotas = .standard,
    connections: Int = PostgresStore.connectionsStandard, createsIfMissing: Bool = true,
    patience: Duration,
    clock: ServiceClock, log: ServiceLog
  ) {
    self.location = location
    self.limits = limits
    self.quotas = quotas
    self.connections = connections
    self.createsIfMissing = createsIfMissing
    self.patience = patience
    self.clock = clock
    self.log = log
  }

  /// Returns the store.
  package func open() async throws(FerryServerError) -> any SyncStore {
    if case .embedded(let directory) = location { try DataDirectory.prepare(directory) }
    return try await retry { () async throws(StoreError) in try await openOnce() }
  }

  /// Calls `attempt` until it succeeds, fails permanently, or the time limit is over.
  func retry<T>(
    sleep: (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    _ attempt: () async throws(StoreError) -> T
  ) async throws(FerryServerError) -> T {
    let start = clock.uptime()
    var pause = Duration.milliseconds(250)
    while true {
      let failure: StoreError
      do {
        return try await attempt()
      } catch {
        failure = error
      }
      let waited = clock.uptime() - start
      guard let reason = failure.passingReason, waited + pause <= patience else {
        log.flush()
        throw FerryServerError(failure, location, waited: waited)
      }
      log.write(.warning, "waiting for the database", detail: reason)
      do {
        try await sleep(pause)
      } catch {
        throw FerryServerError(failure, location, waited: waited)
      }
      pause = min(pause * 2, Self.pauseMax)
    }
  }
}

extension StoreError {
  /// The reason for a temporary failure of the store; `nil` for a lasting one.
  fileprivate var passingReason: String? {
    switch self {
    case .unavailable(let reason), .busy(let reason), .readOnly(let reason): reason
    case .needsMemory, .failed: nil
    }
  }
}

extension StoreOpener {
  /// Opens the store; throws the reason if this is not possible now.
  func openOnce() async throws(StoreError) -> any SyncStore {
    switch location {
    case .embedded(let directory):
      try await SQLiteStore(directory: directory, limits: limits, quotas: quotas)
    case .postgres(let addresses):
      try await PostgresStore(
        addresses, limits: limits, quotas: quotas, connections: connections,
        createsIfMissing: createsIfMissing)
    }
  }
}

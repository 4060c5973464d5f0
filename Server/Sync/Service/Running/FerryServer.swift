import FerryHTTPServer
import FerryMissionServer
import FerryPlatform
import FerryProtocol

/// A whole server in this process: the store, the service and the HTTP server before it.
package final class FerryServer: Sendable {
  /// The port for new connections.
  package let port: UInt16
  /// True if it started without any token in existence, and so serves every caller.
  package let startedOpen: Bool
  /// The served store, for users in the same process.
  package let store: any SyncStore

  private let configuration: FerryServerConfiguration
  private let http: HTTPServer
  private let service: SyncService
  private let hub: HeadHub
  private let gate: AccessGate
  private let keeper: AccessKeeper
  private let background: [Task<Void, Never>]
  private let exports: Task<Void, Never>?
  private let lock: DataLock?

  /// Opens the store named by the configuration, and serves it.
  package static func start(
    _ configuration: FerryServerConfiguration
  ) async throws(FerryServerError) -> FerryServer {
    var lock: DataLock?
    if case .embedded(let directory) = configuration.store {
      try DataDirectory.prepare(directory)
      lock = try DataLock(directory: directory)
    }
    let store = try await StoreOpener(configuration).open()
    var configuration = configuration
    configuration.blobs = configuration.blobs ?? configuration.store.blobDirectory
    return try await start(configuration, store: store, lock: lock)
  }

  /// Serves an open store, and closes it on a stop or a failed start.
  package static func start(
    _ configuration: FerryServerConfiguration, store: any SyncStore
  ) async throws(FerryServerError) -> FerryServer {
    try await start(configuration, store: store, lock: nil)
  }

  private static func start(
    _ configuration: FerryServerConfiguration, store: any SyncStore, lock: DataLock?
  ) async throws(FerryServerError) -> FerryServer {
    do {
      return try await FerryServer(configuration, store: store, lock: lock)
    } catch {
      await store.close()
      throw error
    }
  }

  private init(
    _ configuration: FerryServerConfiguration, store: any SyncStore, lock: DataLock?
  ) async throws(FerryServerError) {
    let gate = AccessGate(
      store: store, clock: configuration.clock, policy: configuration.openPolicy,
      limits: configuration.rates, verifier: try await Self.verifier(configuration))
    // The connection to the database may have been lost again since the store was opened.
    startedOpen = try await StoreOpener(configuration).retry { () async throws(StoreError) in
      try await store.recover()
      return try await gate.isOpen()
    }
    if startedOpen, !configuration.isInsecure {
      guard configuration.listen.isLoopback else { throw .needsTokens(configuration.listen) }
      // The clients may be anywhere.
      guard configuration.proxies.ranges.isEmpty else { throw .proxyNeedsTokens }
    }
    let (hub, metrics) = (HeadHub(store), ServiceMetrics())
    let desk = try MissionService(configuration, store: store)
    let workers =
      configuration.workers
      ?? ThreadPoolExecutor(
        name: "ferry-request", threads: ThreadPoolExecutor.usualThreadCount)
    var parts = SyncService.Parts(
      store: store, gate: gate, hub: hub, metrics: metrics, log: configuration.log,
      clock: configuration.clock, limits: configuration.limits,
      quotas: configuration.quotas, missions: desk,
      executor: workers)
    parts.memory = MemoryBudget(limit: configuration.memoryBudget)
    parts.crossOrigin = CrossOriginRule(configuration.allowedOrigins)
    parts.userSpaces = configuration.userSpaces
    parts.tracer = configuration.tracer
    parts.mirrors = configuration.mirrors
    parts.addressStreamLimit = configuration.addressStreamLimit
    parts.streamLimit = configuration.streamLimit ?? max(1, configuration.connectionLimit / 2)
    let service = SyncService(parts)
    let collector = desk.map {
      BlobCollector(
        store: store, blobs: $0.blobs, clock: configuration.clock, log: configuration.log)
    }
    let keeper = AccessKeeper(
      gate: gate, store: store, clock: configuration.clock, log: configuration.log,
      retention: configuration.auditRetention)
    let pruner = Pruner(
      store: store, clock: configuration.clock, metrics: metrics, log: configuration.log,
      pace: Pruner.Pace(interval: configuration.pruneInterval))
    // Before any caller can listen, so no move is missed.
    let moves = store.heads.stream()
    http = try Self.listen(configuration, service, workers)
    port = http.port
    service.observe { [weak http] in http?.load ?? HTTPServer.Load() }
    background = [
      Task { await hub.forward(moves) },
      Task {
        await hub.sendHeartbeats(every: configuration.heartbeat) { await service.checkStreams() }
      },
      Task { await pruner.run() },
      Task { await collector?.run(every: configuration.collectInterval) },
      Task { await keeper.run() },
      Task { await service.inspection.run() },
    ]
    exports = configuration.tracer.map { tracer in Task { await tracer.exporter.run() } }
    (self.configuration, self.store, self.lock) = (configuration, store, lock)
    (self.service, self.hub, self.gate, self.keeper) = (service, hub, gate, keeper)
  }

  private static func verifier(
    _ configuration: FerryServerConfiguration
  ) async throws(FerryServerError) -> SignedTokenVerifier? {
    guard let issuer = configuration.issuer else { return nil }
    let verifier = SignedTokenVerifier(
      issuer.rules, keys: issuer.source, clock: configuration.clock, log: configuration.log)
    do {
      try await verifier.start()
    } catch {
      // A file is there or not; a URL may be unavailable for a while, and is asked again.
      guard !issuer.source.takesSecrets else { throw .issuerKeys(error.description) }
      configuration.log.write(
        .warning, "the issuer's keys cannot be read", detail: error.description)
    }
    return verifier
  }

  private static func listen(
    _ configuration: FerryServerConfiguration, _ service: SyncService,
    _ workers: ThreadPoolExecutor
  ) throws(FerryServerError) -> HTTPServer {
    var http = HTTPServer.Configuration(
      address: configuration.listen.host, port: configuration.listen.port,
      threads: configuration.threads, bodyLimit: configuration.limits.messageBytes,
      connectionLimit: configuration.connectionLimit,
      failure: { service.respond(to: $0, from: $1) }, onComplete: { service.ended($0) })
    http.connectionReserve = configuration.connectionReserve
    http.addressLimit = configuration.addressLimit
    http.proxies = configuration.proxies
    http.pace = configuration.pace
    http.memory = service.parts.memory
    http.admission = { service.admission(of: $0) }
    let crossOrigin = CrossOriginRule(configuration.allowedOrigins)
    http.amend = { answer, headers in
      var answer = crossOrigin.amend(answer, for: headers)
      // No browser treats an answer as a page or a script because of the content.
      answer.headers["X-Content-Type-Options"] = "nosniff"
      return answer
    }
    http.flow = { service.flow(of: $0, from: $1) }
    http.executor = { workers.executor(of: $0) }
    http.clock = configuration.clock.uptime
    do {
      return try HTTPServer(configuration: http) { await service.respond(to: $0) }
    } catch {
      throw .listen(configuration.listen, error)
    }
  }

  /// The address at which it listens, with the port in use.
  package var address: ListenAddress {
    ListenAddress(host: configuration.listen.host, port: port)
  }

  /// Reads the keys of the tokens' issuer again, and looks up each token again at its next use. The
  /// log reports the result; if the keys cannot be read, the last good ones stay.
  package func reload() async {
    do throws(KeySourceError) {
      try await gate.reload()
      configuration.log.write(.info, "tokens and keys are read again")
    } catch {
      configuration.log.write(
        .warning, "the issuer's keys cannot be read", detail: error.description)
    }
  }

  /// Stops: accepts nothing more, ends the streams of events, lets requests in progress finish for
  /// as long as the configuration allows, and closes the store. Call it once.
  package func stop() async {
    service.beginStopping()
    hub.close()
    await http.stop(grace: configuration.stopGrace)
    for task in background { task.cancel() }
    await keeper.storeUses()
    await service.inspection.save()
    await store.close()
    await endExports()
    configuration.log.reportLeftOut()
    configuration.log.flush()
  }

  /// The longest time of the last spans to the collector when the server stops.
  private static let exportLimit = Duration.seconds(2)

  private func endExports() async {
    guard let exports else { return }
    configuration.tracer?.exporter.close()
    let limit = Task {
      if (try? await Task.sleep(for: Self.exportLimit)) != nil { exports.cancel() }
    }
    await exports.value
    limit.cancel()
  }
}

extension FerryServerError {
  /// Maps a store's error at the start.
  init(_ error: StoreError, _ location: StoreLocation, waited: Duration) {
    switch error {
    case .unavailable(let reason), .busy(let reason), .readOnly(let reason):
      self = .storeUnavailable(location.description, reason: reason, waited: waited)
    case .needsMemory: self = .storeFailed(location.description, reason: "it needs more memory")
    case .failed(let reason): self = .storeFailed(location.description, reason: reason)
    }
  }
}

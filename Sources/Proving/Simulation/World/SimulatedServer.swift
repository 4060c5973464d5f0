import FerryConformance
import FerryHTTPServer
import FerryMissionServer
import FerryProtocol
import FerrySyncServer

/// The server's process: the product's service over a store, started and killed by the world.
// SAFETY: touched on the scheduler's thread only.
package final class SimulatedServer: ServerEndpoint, @unchecked Sendable {
  static let name = "server"

  package private(set) var generation: Int?
  private var starts = 0
  private let scheduler: Scheduler
  private let trace: Trace
  private let limits: Limits
  private let clocks: NodeClocks
  let storage: any SimulatedStorage
  /// Created before the first request, with their schemas.
  private let spaces: [SpaceName]
  private let schema: SpaceSchema
  private let pruning: ServerPruning
  /// `nil` in a world without missions.
  let missions: ServerMissions?
  /// Learns of reports about bundles; `nil` in a world without bundles.
  var bundles: BundleSetting?
  private var process: Process?
  /// Streams of events begun by the server's processes.
  private var streams: [HTTPStream] = []
  private var isRetired = false

  private struct Process {
    /// Of each node; they share a store, as nodes on one database do.
    let services: [SyncService]
    let store: any SyncStore
    let hub: HeadHub
    let background: [Task<Void, Never>]
  }

  init(
    _ scheduler: Scheduler, trace: Trace, limits: Limits, clocks: NodeClocks,
    storage: any SimulatedStorage, spaces: [SpaceName], schema: SpaceSchema,
    pruning: ServerPruning, missions: ServerMissions? = nil
  ) {
    (self.scheduler, self.trace, self.limits) = (scheduler, trace, limits)
    (self.clocks, self.storage, self.spaces) = (clocks, storage, spaces)
    (self.schema, self.pruning, self.missions) = (schema, pruning, missions)
  }

  // MARK: Life

  /// Starts a process; tries again each second while the store cannot be opened.
  func start() {
    guard !isRetired else { return }
    starts += 1
    let generation = starts
    scheduler.task { [self] in
      do {
        let store = try await storage.open { self.starts == generation }
        guard starts == generation else { return }
        if pruning.retention != nil { try storage.installPruning() }
        try await declare(on: store)
        guard starts == generation else { return }
        listen(on: store, generation)
      } catch {
        guard starts == generation else { return }
        trace.record(.crashed, Self.name, "cannot open the store: \(error)")
        storage.kill()
        scheduler.after(1_000_000) { [self] in if starts == generation { start() } }
      }
    }
  }

  /// Puts the application's schema in force if there is none: in the first process, and after a
  /// power loss. Devices may have added definitions since.
  private func declare(on store: any SyncStore) async throws {
    for space in spaces {
      let id = try await store.createSpace(space).id
      if try await store.schema(of: id).version == 0 {
        _ = try await store.applySchema(schema, to: id, now: clocks.right.wall()).get()
      }
      if let retention = pruning.retention { try await store.setRetention(retention, of: id) }
    }
  }

  private func listen(on store: any SyncStore, _ generation: Int) {
    let (scheduler, clock) = (scheduler, clocks.right)
    let hub = HeadHub(store, sleep: { try await scheduler.sleep($0) }, executor: scheduler)
    let log = ServiceLog(level: .error, sink: NoLog(), clock: clock)
    let metrics = ServiceMetrics()
    let pruner = Pruner(
      store: store, clock: clock, metrics: metrics, log: log, pace: pruning.pace,
      sleep: { try await scheduler.sleep($0) })
    let desk = desk(on: store, generation)
    let services = clocks.nodes.map { clock in
      SyncService(
        SyncService.Parts(
          store: store, gate: AccessGate(store: store, clock: clock, checksLoopback: false),
          hub: hub, metrics: metrics, log: log, clock: clock, limits: limits, missions: desk,
          executor: scheduler))
    }
    let moves = store.heads.stream()
    process = Process(
      services: services, store: store, hub: hub,
      background: [
        scheduler.task { await hub.forward(moves) },
        scheduler.task { await hub.sendHeartbeats(every: .seconds(15)) },
        scheduler.task { [self] in
          await pruner.run { run in if starts == generation { logRun(run) } }
        },
      ])
    self.generation = generation
    trace.record(.restarted, Self.name)
  }

  private func desk(on store: any SyncStore, _ generation: Int) -> MissionService? {
    missions.map { missions in
      let blobs = BlobThreads(missions.directory) { [self] name in
        Processor(scheduler, random: SeededRandom(UInt64(generation), name)) {
          self.starts == generation
        }
      }
      return MissionService(
        store: store, blobs: blobs, signer: missions.signer, clock: clocks.right)
    }
  }

  /// Kills the process with kill -9, or cuts the power.
  func crash(losingPower: Bool) {
    trace.record(losingPower ? .lostPower : .crashed, Self.name)
    generation = nil
    starts += 1
    if losingPower { storage.losePower() } else { storage.kill() }
    guard let process else { return }
    self.process = nil
    for task in process.background { task.cancel() }
    process.hub.close()
    forgetStreams()
  }

  /// Releases the sockets as the operating system does, also of half-open connections and of
  /// requests whose responses no client reads. Every client able to notice the end has noticed it
  /// by then.
  private func forgetStreams() {
    let ended = streams
    streams = []
    scheduler.after(1_000_000) { for stream in ended { stream.connectionEnded() } }
  }

  /// Ends the server with the world: it never starts again.
  func retire() {
    isRetired = true
    crash(losingPower: false)
  }

  // MARK: Requests

  package func respond(to request: HTTPRequest, message: Int) async -> HTTPResponse {
    guard let process else { return HTTPResponse(status: 503) }
    let node = clocks.node(of: request.remoteAddress)
    let answered = bundles?.watch(request)
    let response = await process.services[node].respond(to: request)
    answered?(response)
    if case .stream(let stream) = response.body {
      streams.append(stream)
      if isRetired { forgetStreams() }
    }
    logAnswer(response, to: request, message)
    return response
  }

  private func logRun(_ run: PruneRun) {
    let rows = run.rows
    guard rows.count > 0 else { return }
    trace.record(
      .pruned, Self.name, "\(rows.operations) operations, \(rows.tombstones) tombstones")
  }

  private func logAnswer(_ response: HTTPResponse, to request: HTTPRequest, _ message: Int) {
    guard case .bytes(let body) = response.body else { return }
    let device = request.remoteAddress
    if response.status >= 400 {
      let code = Problem(decoding: body)?.code.rawValue ?? ""
      return trace.record(
        .refused, Self.name, peer: device, message: message, "\(response.status) \(code)")
    }
    switch request.segments.last {
    case "packets":
      guard let answer = try? PacketAnswer(decoding: body, limits: limits) else { return }
      let isBuffered = answer.receipt.status == .buffered
      trace.record(
        isBuffered ? .buffered : .applied, Self.name, peer: device, message: message,
        "\(answer.receipt.status.rawValue) \(answer.receipt.outcomes.count), head \(answer.head)")
      if !answer.released.isEmpty {
        trace.record(.released, Self.name, peer: device, "\(answer.released.count) packets")
      }
    case "changes": trace.record(.pulled, Self.name, peer: device, message: message)
    default: return
    }
  }
}

/// The place of the server's store, and its faults.
protocol SimulatedStorage: AnyObject {
  /// Opens the store; `isAlive` returns whether the calling process still is alive.
  func open(_ isAlive: @escaping () -> Bool) async throws -> any SyncStore
  /// Reports the death of the process; all writes remain.
  func kill()
  /// Reports the death of the machine; part of the unsynced data is gone.
  func losePower()
  /// Returns the content of a space.
  func evidence(of space: SpaceName) throws -> ServerEvidence
  /// Makes the store keep pruned rows for the oracles; the store is open.
  func installPruning() throws
  /// Returns the newest sequence assigned in a space, and the anchor of a cursor there.
  func newest(in space: SpaceName) throws -> (head: SequenceNumber, anchor: Cursor.Anchor?)
  /// Copies everything for ``goBack(to:)``, until ``forget(copy:)``; returns `nil` if it cannot.
  func makeCopy(_ name: String) -> String?
  /// Replaces everything by a copy; no process is running.
  func goBack(to copy: String)
  func forget(copy: String)
  /// Closes the store; no call follows.
  func close()
}

/// Drops all lines.
private struct NoLog: LogSink {
  var droppedLines: Int { 0 }
  func write(_ line: [UInt8]) {}
  func flush() {}
}

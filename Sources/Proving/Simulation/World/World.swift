import FerryConformance
import FerryLaboratory
import FerryProtocol
import FerrySyncServer

/// A whole world: devices, network, server and users, in virtual time on this thread.
// SAFETY: touched on the scheduler's thread only.
package final class World: @unchecked Sendable {
  package let options: WorldOptions
  let scheduler = Scheduler()
  let trace: Trace
  let dice: FaultDice
  let disk: SimulatedDisk
  let server: SimulatedServer
  /// The server, with the planted mistake if there is one.
  private let endpoint: any ServerEndpoint
  private let planted: PlantedFault?
  var devices: [SimulatedDevice] = []
  /// By the paths of files.
  var diskSites: [String: FaultDice.Site] = [:]
  /// Called with each begun virtual second, for a progress bar.
  package var onSecond: ((Int64) -> Void)?
  let seed: UInt64
  private let plan: WorldPlan
  let network: SimulatedNetwork
  private let limits: Limits
  private let stepsMax: Int
  private var judges: [SpaceName: OracleBench] = [:]
  private var moves = MovedRows()
  /// `nil` in a world whose events are not kept.
  private let journal: ConflictJournal?
  private(set) var violations: [Violation] = []
  /// True if the run has ended. Events of the plan may be left, since a violation ends a run early.
  private(set) var isOver = false
  let skipped: SkippedTime
  let nodeClocks: NodeClocks
  private(set) var committed = 0
  private(set) var serverWentBack = false
  /// Both `nil` in a world without missions and bundles.
  private(set) var missions: MissionSetting?
  private(set) var publisher: MissionPublisher?
  /// Both `nil` in a world without bundles.
  private(set) var bundles: BundleSetting?
  private(set) var bundlePublisher: BundlePublisher?
  private var strangers: [Stranger] = []
  /// `nil` in a world whose server is honest.
  private(set) var hostile: HostileServer?

  /// - Parameters:
  ///   - keepsEvents: Whether the trace is kept for a report.
  ///   - postgres: The URL of an empty database; `nil` is the embedded store on the world's disk.
  ///   - mirrors: The URL of an empty database for the tables of mirrors; without it, the world has
  ///     none.
  ///   - planted: A mistake of this world; of the server, only with the embedded store.
  ///   - stepsMax: A run with more steps than this runs in circles.
  package init(
    seed: UInt64, options: WorldOptions, plan: WorldPlan? = nil, keepsEvents: Bool = false,
    postgres: String? = nil, mirrors: String? = nil, planted: PlantedFault? = nil,
    stepsMax: Int = 50_000_000
  ) throws {
    (self.seed, self.options, self.stepsMax) = (seed, options, stepsMax)
    self.planted = planted
    self.plan = plan ?? WorldPlan(seed: seed, options: options)
    var limits = Limits.standard
    limits.operationsPerPacket = options.packetOperations
    limits.changesPerPage = options.pageChanges
    // Rows of a few texts come to their limit, and are larger than one operation before.
    (limits.operationBytes, limits.recordStateBytes) = (16 << 10, 24 << 10)
    self.limits = limits
    let scheduler = scheduler
    trace = Trace(scheduler, keepsEvents: keepsEvents)
    journal = keepsEvents ? ConflictJournal() : nil
    dice = FaultDice(
      seed: seed, ratios: options.ratios, allowed: self.plan.chances)
    let disk = SimulatedDisk(
      name: "world", clock: { DeviceClock.start + scheduler.now / 1_000 },
      random: Drawer(SeededRandom(seed, "disk")).next)
    self.disk = disk
    let storage: any SimulatedStorage
    if let postgres {
      storage = PostgresStorage(
        scheduler, url: postgres, limits: limits, random: SeededRandom(seed, "epochs"))
    } else {
      storage = EmbeddedStorage(
        scheduler, disk: disk, limits: limits, random: SeededRandom(seed, "store"))
    }
    let skipped = SkippedTime()
    self.skipped = skipped
    let nodeClocks = NodeClocks(
      scheduler, nodes: options.nodes, step: Int64(options.clockStep), skipped)
    self.nodeClocks = nodeClocks
    server = SimulatedServer(
      scheduler, trace: trace, limits: limits, clocks: nodeClocks,
      storage: storage,
      spaces: (0..<min(options.spaces, options.devices)).map { Self.space($0) }
        + (options.shares > 0 ? [Self.shared] : []),
      schema: mirrors == nil
        ? try SpaceSchema(json: Workload.declared)
        : try Workload.declaredForMirrors(hasOrders: options.hasOrders),
      pruning: ServerPruning(options),
      missions: try Self.makeServerMissions(seed: seed, options))
    if let planted, let storage = storage as? EmbeddedStorage {
      endpoint = PlantedEndpoint(
        planted, server, storage, scheduler, dice: dice, limits: limits)
    } else {
      endpoint = server
    }
    let hostile =
      options.lies > 0 ? HostileServer(endpoint, trace: trace, limits: limits, seed: seed) : nil
    self.hostile = hostile
    network = SimulatedNetwork(
      scheduler, dice: dice, trace: trace, server: hostile ?? endpoint)
    connectDisk()
    connectNetwork()
    connectMissions()
    addStrangers()
    for index in 0..<options.devices { addDevice(index) }
    if let mirrors { addMirrors(in: mirrors) }
  }

  private func addStrangers() {
    guard options.hasStrays else { return }
    for space in 0..<min(options.spaces, options.devices) {
      for index in 0..<options.strangers {
        let name = "stranger-\(space)-\(index)"
        strangers.append(
          Stranger(
            name, in: Self.space(space), scheduler, trace: trace, server: endpoint, limits: limits,
            attacks: options.attacks > 0, random: SeededRandom(seed, name)))
      }
    }
  }

  private func connectMissions() {
    guard options.missions > 0 || options.bundles > 0 else { return }
    let setting = MissionSetting(seed: seed, missions: options.missions) { [unowned self] in
      report($0, by: $1)
    }
    missions = setting
    publisher = MissionPublisher(
      scheduler, trace: trace, server: server, setting: setting, options: options,
      space: { Self.space($0) })
    guard options.bundles > 0 else { return }
    let bundles = BundleSetting(seed: seed) { [unowned self] in report($0, by: $1) }
    self.bundles = bundles
    server.bundles = bundles
    bundlePublisher = BundlePublisher(
      scheduler, trace: trace, server: server, setting: bundles, missions: setting,
      space: { [options] in Self.space(options.space(ofMission: $0)) })
  }

  /// Makes worlds faster in a process that runs one at a time and uses SQLite for nothing else.
  /// Call it first of all.
  package static func dedicateProcess() { SimulatedDisk.dedicateProcess() }

  // MARK: Making

  @discardableResult
  func addDevice(_ index: Int, to space: SpaceName? = nil) -> SimulatedDevice {
    let name = index < 10 ? "device-0\(index)" : "device-\(index)"
    var random = SeededRandom(seed, name)
    let skew = options.clockSkew == 0 ? 0 : random.below(2 * options.clockSkew) - options.clockSkew
    let drift =
      options.clockDrift == 0 ? 0 : random.below(2 * options.clockDrift) - options.clockDrift
    let link = NetworkLink(
      device: name, random: SeededRandom(seed, "link-\(name)"),
      delays: options.delayMin...max(options.delayMin, options.delayMax))
    let setting = SimulatedDevice.Setting(
      scheduler: scheduler, disk: disk, dice: dice, trace: trace, network: network, limits: limits,
      skipped: skipped, planted: planted, recordsSteps: options.recordedSteps > 0,
      missions: missions, bundles: bundles, shared: options.shares > 0 ? Self.shared : nil,
      hasStrays: options.hasStrays, hasBranches: options.hasBranches, hasOdd: options.hasOdd,
      hasStacks: options.hasStacks, hasRules: options.companyRules > 0,
      hasOrders: options.hasOrders, heldRows: options.heldRows,
      journal: journal, tell: { [unowned self] in notify($2, of: $0, in: $1) },
      report: { [unowned self] in report($1, by: $0.name) })
    let device = SimulatedDevice(
      name: name, space: space ?? Self.space(index % options.spaces), link: link,
      clock: DeviceClock(
        offset: Int64(skew), drift: Int64(drift), step: max(1, Int64(options.clockStep))),
      watches: random.chance(options.watchers, in: 100),
      // Every other device, if it is half of them.
      connectsLate: (index % 2 == 1 ? 0 : 50) + index % 50 < options.lateContacts,
      joins: options.joined != 0, definesOdd: options.hasOdd && index < options.spaces,
      syncPause: options.syncPause, random: random, setting: setting)
    devices.append(device)
    return device
  }

  /// The second space of all devices, in a world with rows of two spaces.
  private static let shared: SpaceName = {
    guard let name = SpaceName("shared") else { preconditionFailure("not a name") }
    return name
  }()

  /// The spaces of all files, by name.
  private var allSpaces: [SpaceName] {
    Set(devices.flatMap { $0.ledgers.map(\.space) }).sorted { $0.value < $1.value }
  }

  private static func space(_ index: Int) -> SpaceName {
    guard let name = SpaceName("space-\(index)") else { preconditionFailure("not a name") }
    return name
  }

  /// Replaces all data of the server by a copy, and reports the lost operations to the oracles.
  func setServerBack(to copy: String) {
    let spaces = allSpaces
    let before = spaces.map { history(of: $0) }
    let defining = devices.filter { definesOddTables($0.space) && $0.definesOdd }
    server.crash(losingPower: false)
    trace.record(.copied, SimulatedServer.name, "set back to an earlier copy")
    server.storage.goBack(to: copy)
    serverWentBack = true
    for device in defining where !definesOddTables(device.space) { device.oddLosses += 1 }
    missions?.notify(.serverWentBack, by: SimulatedServer.name)
    for (space, before) in zip(spaces, before) {
      let event = RunEvent.serverWentBack(from: before, to: history(of: space))
      report(judges[space, default: OracleBench()].see(event), by: SimulatedServer.name)
    }
  }

  /// True if the server has every space.
  var hasAllSpaces: Bool {
    allSpaces.allSatisfy { space in
      (try? dice.quietly { try server.storage.evidence(of: space) }) != nil
    }
  }

  private func history(of space: SpaceName) -> [OperationID] {
    let evidence = try? dice.quietly { try server.storage.evidence(of: space) }
    return evidence?.history.map(\.id) ?? []
  }

  /// True if the server has the definitions of the tables with odd names.
  private func definesOddTables(_ space: SpaceName) -> Bool {
    guard options.hasOdd,
      let evidence = try? dice.quietly({ try server.storage.evidence(of: space) })
    else { return false }
    return Workload.definesOddTables(evidence)
  }

  private func notify(_ event: RunEvent, of device: SimulatedDevice, in space: SpaceName) {
    if case .committed(_, let operations) = event { committed += operations.count }
    journal?.see(event)
    moves.see(event)
    report(judges[space, default: OracleBench()].see(event), by: device.name)
  }

  func report(_ found: [Violation], by actor: String = "world") {
    for violation in found {
      trace.record(.violation, actor, violation.description)
      violations.append(violation)
    }
  }

  // MARK: Running

  /// Runs the world to the end, or to the first violation.
  package func run() -> WorldResult {
    defer { end() }
    trace.record(.phase, "world", "safety")
    server.start()
    if hostile != nil {
      for space in allSpaces { _ = judges[space, default: OracleBench()].see(.serverLies) }
    }
    for device in devices { device.start() }
    schedule()
    let end = Int64(options.seconds) * 1_000_000
    for stranger in strangers { stranger.start(until: end) }
    tick(1)
    _ = scheduler.run(limit: stepsMax) { !violations.isEmpty || scheduler.now >= end }
    reportCircles()
    if violations.isEmpty { heal() }
    if violations.isEmpty { judge() }
    return WorldResult(
      seed: seed, options: options, violations: violations, traceHash: trace.digest,
      counts: trace.counts, happened: dice.happened, plannedFaults: plan.faults,
      committed: committed, virtualTime: scheduler.now, steps: scheduler.steps,
      actors: devices.map(\.name) + [SimulatedServer.name], events: namedEvents())
  }

  /// Returns the events with the lost values. The trace's hash is complete by then.
  private func namedEvents() -> [TraceEvent] {
    guard let journal else { return trace.events }
    return journal.named(trace.events) { space in
      (try? dice.quietly { try server.storage.evidence(of: space) })?.history ?? []
    }
  }

  private func reportCircles() {
    guard violations.isEmpty, scheduler.steps >= stepsMax else { return }
    let what = "\(scheduler.now / 1_000) ms took \(stepsMax) steps: it goes round in circles"
    report([Violation(oracle: "liveness", what)])
  }

  /// Passes a virtual second to `onSecond`, if it is set. The last tick is the end of the safety
  /// phase to the microsecond either way, since the run has to be the same.
  private func tick(_ second: Int64) {
    guard second <= options.seconds else { return }
    scheduler.after(1_000_000) { [unowned self] in
      onSecond?(second)
      tick(second + 1)
    }
  }

  private func schedule() {
    for action in plan.actions {
      scheduler.after(action.at * 1_000) { [unowned self] in
        devices[action.device].perform(action)
      }
    }
    for fault in plan.faults {
      scheduler.after(fault.at * 1_000) { [unowned self] in perform(fault) }
    }
    for planned in plan.missions {
      scheduler.after(planned.at * 1_000) { [unowned self] in perform(planned) }
    }
    for planned in plan.bundles {
      scheduler.after(planned.at * 1_000) { [unowned self] in perform(planned) }
    }
  }

  /// Ends all faults; within the bound all has to drain.
  private func heal() {
    trace.record(.phase, "world", "liveness")
    dice.isActive = false
    hostile?.endAll()
    for device in devices { device.link.mendAll() }
    if server.generation == nil { server.start() }
    for device in devices { device.switchOnForGood() }
    let end = scheduler.now + Int64(options.livenessSeconds) * 1_000_000
    var isDone = false
    func look() {
      isDone = isDrained()
      if !isDone && scheduler.now < end { scheduler.after(1_000_000, look) }
    }
    look()
    _ = scheduler.run(limit: stepsMax - scheduler.steps) {
      isDone || !violations.isEmpty || scheduler.now >= end
    }
    reportCircles()
    if !isDone && violations.isEmpty {
      report([Violation(oracle: "liveness", whatIsLeft())])
    }
  }

  private func judge() {
    trace.record(.phase, "world", "judgement")
    var servers: [SpaceName: ServerEvidence] = [:]
    for space in allSpaces {
      do {
        let server = try server.storage.evidence(of: space)
        servers[space] = server
        report(judges[space, default: OracleBench()].judge(final(space, server)))
        try judgeMirrors(of: space, server)
        guard space != Self.shared else { continue }
        try judgeMissions(in: space)
        judgeBundles(in: space, server)
      } catch {
        report([Violation(oracle: "evidence", "space \(space): \(error)")])
      }
    }
    report(moves.judge(servers))
    for device in devices {
      report(device.judgeFile() + device.judgeDefinitions(), by: device.name)
    }
  }

  private func final(_ space: SpaceName, _ server: ServerEvidence) -> FinalEvidence {
    let replicas = devices.flatMap { device in
      device.ledgers.filter { $0.space == space }.compactMap { ledger in
        device.finalEvidence(of: ledger).map { (device.name, $0) }
      }
    }
    return FinalEvidence(
      server: server, replicas: Dictionary(replicas, uniquingKeysWith: { first, _ in first }))
  }

  /// Ends all processes, so the world can be forgotten.
  private func end() {
    isOver = true
    disk.faults = { _ in nil }
    for device in devices { device.retire() }
    publisher?.stop()
    bundlePublisher?.stop()
    for stranger in strangers { stranger.stop() }
    server.retire()
    _ = scheduler.run(limit: stepsMax) { false }
    for device in devices { device.mirror?.close() }
    server.storage.close()
    removeServerMissions()
  }
}

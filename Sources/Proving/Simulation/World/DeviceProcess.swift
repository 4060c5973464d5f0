import FerryConformance
import FerryNetworking
import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerrySyncClient
import Synchronization

/// One run of a device's process: opens the replica, sets it up, keeps it in step, and makes the
/// user's transactions.
// SAFETY: touched on the scheduler's thread only.
final class DeviceProcess: @unchecked Sendable {
  let device: SimulatedDevice
  let setting: SimulatedDevice.Setting
  var random: SeededRandom
  private(set) var isAlive = true
  private var isSyncLocked = false
  private var tasks: [Task<Void, Never>] = []
  /// The replica of the device's own space.
  private(set) var replica: Replica?
  /// The replica that has opened the file: of the first space.
  private(set) var whole: Replica?
  /// `nil` in a world without missions, and until the replica is open.
  private(set) var missions: DeviceMissions?
  /// The process's own connections to the ledgers, on which others may look at the file between two
  /// transactions.
  private var connections: [Int: SQLiteConnection] = [:]
  /// Of a mirror; `nil` before the first round.
  private(set) var carrier: MirrorCarrier?
  /// True if the tables are known to be at the newest version of the application's schema.
  var isUpgraded = false
  /// True if the tables defined by one device are known to be published, or here.
  var hasOddTables = false
  var isArrangingOdd = false
  /// The places of a first list's copies in the file, after the last slice.
  var copyPlaces: Set<Int64> = []

  init(_ device: SimulatedDevice, _ setting: SimulatedDevice.Setting, seed: UInt64) {
    (self.device, self.setting) = (device, setting)
    random = SeededRandom(seed, "process")
  }

  func run() { start { [self] in await live() } }

  /// Ends all effects: it changes nothing from now on.
  func die() {
    isAlive = false
    for task in tasks { task.cancel() }
    tasks = []
    missions?.die()
    // They hold the replica, and the replica's surroundings hold this process.
    missions = nil
    (replica, whole, carrier) = (nil, nil, nil)
    connections = [:]
  }

  /// Passes the last operations of a program's writes to the oracles, if the file has them.
  func reportWritten() { carrier?.reportWritten() }

  /// Returns the process's own connection to a ledger; `nil` before the file is open.
  func connection(of ledger: SimulatedDevice.Ledger) -> SQLiteConnection? {
    connections[ledger.number]
  }

  func start(_ body: @escaping @Sendable () async -> Void) {
    tasks.append(setting.scheduler.task(body))
  }

  // MARK: Living

  private func live() async {
    while isAlive && replica == nil {
      do {
        let first = try await open()
        if device.renamesShared { try await renameShared(in: first) }
        let own = try await own(of: first)
        try await setUp(own, first)
        guard isAlive else { return }
        (replica, whole) = (own, first)
      } catch {
        fail("start", error)
        try? await setting.scheduler.sleep(.milliseconds(500 + random.below(2_000)))
      }
    }
    guard let replica else { return }
    if let shared = setting.missions, isAlive {
      let missions = DeviceMissions(device, setting, shared, replica: replica, seed: random.next())
      self.missions = missions
      start { await missions.run() }
    }
    while isAlive { await exchange(replica, whole ?? replica) }
  }

  /// Opens the file's first space. Half of the devices name the server here: they work offline, and
  /// make their first contact with their first sync.
  private func open() async throws -> Replica {
    let transport = transport
    let first = device.ledgers.first { $0.number == 1 }
    guard let first, device.connectsLate else {
      return try await Replica.open(device.path, transport: transport, in: surroundings)
    }
    let server = ServerAddress(url: Self.server, space: first.space)
    return try await Replica.open(
      device.path, server: server, transport: transport, in: surroundings)
  }

  private var transport: any Transport {
    let transport = SimulatedTransport(setting.network, link: device.link)
    guard let planted = setting.planted else { return transport }
    return PlantedTransport(
      fault: planted, inner: transport, scheduler: setting.scheduler, limits: setting.limits
    ) { [self] in connections[device.ledgers[0].number] }
  }

  /// Returns the replica of the device's own space, after the file has joined the second space.
  private func own(of first: Replica) async throws -> Replica {
    let ledgers = device.ledgers
    if let space = ledgers.first(where: { $0.number == 1 })?.space, ledgers.count > 1 {
      let isConnected = try await first.write {
        try $0.connection.exists("SELECT 1 FROM ferry_replica WHERE server IS NOT NULL")
      }
      if !isConnected { try await first.connect(to: Self.server, space: space.value) }
    }
    var own = first
    for ledger in ledgers where ledger.number > 1 {
      let joined = try await first.spaces.join(ledger.space.value, server: Self.server)
      if ledger.space == device.space { own = joined }
    }
    return own
  }

  private static let server = "http://ferry.test"

  /// Sets up the replica as an application does at the start: creates missing tables, tracks them,
  /// and names the server.
  private func setUp(_ replica: Replica, _ first: Replica) async throws {
    let shares = device.ledgers.count > 1
    let (isNew, isConnected) = try await replica.write { [self] database in
      if isAlive {
        for ledger in device.ledgers {
          connections[ledger.number] = ledger.on(database.connection)
        }
      }
      let ledger = device.ledgers[0].on(database.connection)
      let isConnected = try ledger.exists("SELECT 1 FROM ferry_replica WHERE server IS NOT NULL")
      guard try database.query("SELECT 1 FROM sqlite_schema WHERE name = 'notes'").isEmpty else {
        return (false, isConnected)
      }
      try createTables(in: database, shares: shares)
      return (true, isConnected)
    }
    if let planted = setting.planted {
      try await replica.write { [device] in
        try planted.plant(on: device.ledgers[0].on($0.connection))
      }
    }
    if isNew { setting.trace.record(.wrote, device.name, "made the tables") }
    try await replica.track(trackedTables)
    if shares {
      try await first.track(Workload.shared.tables, spaceColumn: Workload.shared.column)
    }
    // Some users name their devices, and change the name now and then.
    if device.connectsLate { try await replica.setDeviceName("\(device.name) \(random.below(3))") }
    if isConnected { return }
    try await replica.connect(to: Self.server, space: device.space.value)
  }

  private func exchange(_ replica: Replica, _ first: Replica) async {
    do {
      if let mirror = device.mirror {
        let pause = device.syncPause / 4 + random.below(max(1, device.syncPause / 2))
        try await setting.scheduler.sleep(.milliseconds(pause))
        let carrier = carrier ?? MirrorCarrier(self, mirror, replica, seed: random.next())
        self.carrier = carrier
        try await carrier.carry()
      } else if device.watches {
        // The first space's replica watches all spaces.
        let watcher = device.ledgers.count > 1 ? first : replica
        try await watcher.watch { _ in
        } onEvent: { [self] event in
          switch event {
          case .synced(let report): synced(report)
          case .offline(let error), .stopped(_, let error): fail("watch", error)
          case .connected: break
          }
        }
      } else {
        let pause = device.syncPause / 2 + random.below(max(1, device.syncPause))
        try await setting.scheduler.sleep(.milliseconds(pause))
        let requests = setting.network.requestCount(of: device.name)
        defer { judgeRequests(since: requests) }
        if device.ledgers.count > 1 { return try await syncSpaces(first) }
        let before = device.unconfirmedOperations(of: device.ledgers[0])
        let report = try await replica.sync()
        if isAlive { judge(report, device.ledgers[0], before) }
        synced(report)
      }
    } catch {
      fail("sync", error)
      try? await setting.scheduler.sleep(.milliseconds(100 + random.below(1_000)))
    }
  }

  /// Syncs all spaces of the file, or now and then the joined one alone.
  private func syncSpaces(_ first: Replica) async throws {
    let before = device.ledgers.map { device.unconfirmedOperations(of: $0) }
    if random.chance(1, in: 3), let joined = try await first.spaces.replicas().first {
      return synced(try await joined.sync())
    }
    let results = try await first.spaces.sync()
    for (ledger, before) in zip(device.ledgers, before) {
      guard let space = results.first(where: { $0.space == ledger.space.value }) else { continue }
      switch space.result {
      case .success(let report):
        if isAlive { judge(report, ledger, before) }
        synced(report)
      case .failure(let error): fail("sync of \(ledger.space)", error)
      }
    }
  }

  private func judge(
    _ report: SyncReport, _ ledger: SimulatedDevice.Ledger, _ before: [OperationID]?
  ) {
    guard let before, let after = device.unconfirmedOperations(of: ledger) else { return }
    setting.report(
      device,
      NothingLeftBehind.judge(
        device: device.name, before: before, after: after, left: report.left))
  }

  private func synced(_ report: SyncReport) {
    guard isAlive else { return }
    missions?.bundles?.look()
    reportExchange()
    arrangeOddTables()
    setting.trace.record(
      .synced, device.name,
      "pushed \(report.pushed), pulled \(report.pulled), buffered \(report.buffered)")
    if report.conflicts > 0 {
      setting.trace.record(.conflict, device.name, "\(report.conflicts) values lost")
      setting.journal?.look(
        at: device, on: setting.disk, event: setting.trace.events.count - 1)
    }
    device.observe()
  }

  func fail(_ what: String, _ error: any Error) {
    guard isAlive else { return }
    setting.trace.record(.syncFailed, device.name, "\(what): \(error)")
  }

  // MARK: Surroundings

  private var surroundings: ReplicaSurroundings {
    let (scheduler, device, setting) = (setting.scheduler, device, setting)
    let identifiers = Drawer(SeededRandom(random.next(), "identifiers"))
    let seed = random.next()
    var surroundings = ReplicaSurroundings(
      wallClock: { device.clock.wall(at: scheduler.now) + setting.skipped.milliseconds },
      random: { identifiers.next() },
      sleep: { try await scheduler.sleep($0) },
      makeExecutor: { [self] name in
        Processor(scheduler, random: SeededRandom(seed, name)) { self.isAlive }
      },
      lock: { [self] _, patience in try await lock(patience) })
    surroundings.fileSystem = setting.disk.fileSystem
    surroundings.firstLists = firstLists
    surroundings.executor = scheduler
    surroundings.limits = setting.limits
    surroundings.isAuthority = device.mirror?.isAuthority ?? false
    surroundings.numbering = device.mirror?.numbers
    surroundings.sendsDurably = device.mirror != nil
    surroundings.sync.pageSize = setting.limits.changesPerPage
    surroundings.watch.localPoll = .milliseconds(700)
    return surroundings
  }

  private func lock(_ patience: Duration) async throws -> SyncLock {
    var waited: Duration = .zero
    while isSyncLocked {
      guard waited < patience else { throw ReplicaError.busy("another sync is under way") }
      try await setting.scheduler.sleep(.milliseconds(20))
      waited += .milliseconds(20)
    }
    isSyncLocked = true
    return SyncLock { self.isSyncLocked = false }
  }
}

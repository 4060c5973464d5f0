import FerryConformance
import FerryMissions
import FerryNetworking
import FerryPlatform
import FerryProtocol
import FerrySQLite
import FerrySyncClient

/// The part of a device's process for missions: the product's manager with its store, queue and
/// transfers, on the device's disk and link.
// SAFETY: touched on the scheduler's thread only.
final class DeviceMissions: @unchecked Sendable {
  private let device: SimulatedDevice
  private let shared: SimulatedDevice.Setting
  private let setting: MissionSetting
  private let replica: Replica
  private let seed: UInt64
  private var isAlive = true
  private var manager: MissionManager?
  /// `nil` in a world without bundles, and until the missions are open.
  private(set) var bundles: DeviceBundles?
  private var isSettling = false
  private var isOutdated = false
  /// The missions that differ from the user's requests; `nil` before a check.
  private(set) var left: [String]?
  /// The product's reasons for missing requested missions on the device.
  private(set) var reasons: [MissionID: String] = [:]

  init(
    _ device: SimulatedDevice, _ shared: SimulatedDevice.Setting, _ setting: MissionSetting,
    replica: Replica, seed: UInt64
  ) {
    (self.device, self.shared, self.setting) = (device, shared, setting)
    (self.replica, self.seed) = (replica, seed)
  }

  /// Ends all effects: it changes nothing from now on.
  func die() {
    isAlive = false
    bundles?.die()
    bundles = nil
    guard let manager else { return }
    self.manager = nil
    shared.scheduler.task { await manager.close() }
  }

  // MARK: Living

  /// Opens the manager, which continues the work of the last process.
  func run() async {
    var random = SeededRandom(seed, "restarts")
    device.lookAtMissions()
    while isAlive, manager == nil {
      do {
        let opened = try await open()
        listen(to: opened)
        do {
          let ids = try await opened.restore()
          guard isAlive else { return await opened.close() }
          manager = opened
          log("opened", ids.map(\.value).joined(separator: " "))
        } catch {
          await opened.close()
          throw error
        }
      } catch {
        log("start failed", "\(error)")
        try? await shared.scheduler.sleep(.milliseconds(500 + random.below(2_000)))
      }
    }
    if let manager { showBundles(manager) }
    // An application that updates the user's missions.
    while isAlive, let manager {
      try? await shared.scheduler.sleep(.milliseconds(2_000 + random.below(6_000)))
      if isAlive { _ = await ask(manager) }
    }
  }

  private func showBundles(_ manager: MissionManager) {
    guard isAlive, let setting = shared.bundles else { return }
    let bundles = DeviceBundles(device, shared, setting, replica: replica, seed: seed)
    self.bundles = bundles
    shared.scheduler.task { await bundles.run(manager) }
  }

  private func open() async throws -> MissionManager {
    let (scheduler, device, shared, setting) = (shared.scheduler, device, shared, setting)
    let calls = SimulatedFileCalls(
      shared.disk.folders(of: "/" + device.name), planted: shared.planted
    ) { [self] in
      isAlive
    } isRemoving: { name in
      if let hash = ContentHash(name) { device.lookAtMissions(removing: hash) }
    }
    let makeExecutor: @Sendable (String) -> any WorkExecutor = { [self, seed] name in
      Processor(scheduler, random: SeededRandom(seed, name)) { self.isAlive }
    }
    let files = try DiskFileStore(
      root: device.missionRoot, key: nil, system: calls, makeExecutor: makeExecutor)
    let store = try await SQLiteMissionStore.open(
      device.missionRoot + "/content.db", canonical: { $0 }, on: makeExecutor("mission-store"),
      fileSystem: shared.disk.fileSystem)
    if let planted = shared.planted {
      try planted.plant(
        inMissionsOn: SQLiteConnection(
          path: device.missionRoot + "/content.db", fileSystem: shared.disk.fileSystem))
    }
    let words = Drawer(SeededRandom(seed, "mission-words"))
    let wall: @Sendable () -> Int64 = {
      device.clock.wall(at: scheduler.now) + shared.skipped.milliseconds
    }
    let boot = "\(device.name)-\(device.boots)"
    let downloader = ChunkedDownloader(
      settings: setting.download,
      surroundings: DownloadSurroundings(
        steadyClock: { .microseconds(scheduler.now) }, wallClock: { wall() / 1_000 },
        random: { words.next() }, sleep: { try await scheduler.sleep($0) }, bootID: { boot },
        makeExecutor: makeExecutor, files: calls),
      open: requests())
    return try await MissionManager.open(
      store: store, files: files, downloader: downloader,
      catalogue: Catalogue(replica: replica, name: device.space), options: setting.options,
      in: MissionSurroundings(
        wallClock: wall, steadyClock: { .microseconds(scheduler.now) },
        random: { words.next() }, sleep: { try await scheduler.sleep($0) }, executor: scheduler))
  }

  private func requests() -> DownloadOpening {
    let transport = SimulatedTransport(shared.network, link: device.link) { [self] url in
      guard let name = url.split(separator: "/").last, let hash = ContentHash(name) else {
        return nil
      }
      return BlobConnection.Observer(
        came: { [self] count in notify(.fetched(device: device.name, hash, bytes: Int64(count))) },
        broke: { [self] in notify(.broken(device: device.name, hash)) })
    }
    let opening = ChunkedDownloader.requests(over: transport, server: "http://ferry.test")
    return { [self] (source, fields) async throws(TransportError) in
      guard isAlive else { throw TransportError(.cancelled, "the process is dead") }
      return try await opening(source, fields)
    }
  }

  private func notify(_ event: MissionRunEvent) {
    if isAlive { setting.notify(event, by: device.name) }
  }

  private func log(_ what: String, _ detail: String) {
    guard isAlive else { return }
    shared.trace.record(.mission, device.name, detail.isEmpty ? what : "\(what): \(detail)")
  }

  // MARK: Reports of the manager

  private func listen(to manager: MissionManager) {
    let events = manager.events()
    shared.scheduler.task { [self] in
      for await event in events where isAlive { see(event) }
    }
  }

  private func see(_ event: MissionEvent) {
    switch event {
    case .changed(let id, let state, let reason):
      log("\(id) \(state.rawValue)", reason?.description ?? "")
      if state != .downloading { notify(.rested(device: device.name, id)) }
      if state == .failed || state == .cancelled { notify(.givenUp(device: device.name, id)) }
      if reason?.kind == .files || reason?.kind == .diskFull || reason?.kind == .database {
        notify(.wentBack(device: device.name))
      }
      if state == .done { device.lookAtMissions() }
    case .progress(let progress):
      let version = MissionVersionName(progress.id, progress.version)
      notify(
        .progress(
          device: device.name, version, done: progress.bytesDone, total: progress.bytesTotal))
    case .removed(let id): notify(.givenUp(device: device.name, id))
    case .item: break
    }
  }

  // MARK: The user

  /// Performs the user's action on a mission, if the process is ready for it.
  func perform(_ planned: PlannedMission) {
    guard let manager else { return }
    let id = MissionLibrary.id(planned.mission)
    if planned.kind == .cancel || planned.kind == .remove {
      notify(.givenUp(device: device.name, id))
    }
    shared.scheduler.task { [self] in
      do {
        switch planned.kind {
        case .ask: try await manager.download([id])
        case .pause: try await manager.pause(id)
        case .resume: try await manager.resume(id)
        case .cancel: try await manager.cancel(id)
        case .remove: try await manager.remove(id)
        case .verify: try await verify(id, manager)
        case .publish, .retract: break
        }
        log("user", "\(planned.kind.rawValue) \(id)")
      } catch {
        log("user", "\(planned.kind.rawValue) \(id): \(error)")
      }
      if planned.kind == .cancel || planned.kind == .remove {
        notify(.givenUp(device: device.name, id))
      }
    }
  }

  private func verify(_ id: MissionID, _ manager: MissionManager) async throws {
    let report = try await manager.verify(id, repairing: true)
    // Damaged content is fetched again.
    if !report.isIntact { notify(.givenUp(device: device.name, id)) }
    log("verified", "\(id) \(report.isIntact ? "intact" : "repaired \(report.damaged.count)")")
  }

  // MARK: The end

  /// Requests missing missions of the user again, and records those that are still missing.
  func requestMissing() {
    guard let manager, !isSettling else { return }
    isSettling = true
    isOutdated = false
    shared.scheduler.task { [self] in
      let found = await ask(manager)
      isSettling = false
      (left, reasons) = (isOutdated ? nil : found.left, found.reasons)
    }
  }

  /// Forgets the missing missions: other devices changed the state.
  func unsettle() {
    isOutdated = true
    left = nil
  }

  /// Requests the newest versions of wanted missions. Returns the missing ones, and the reasons why
  /// some never will be there.
  private func ask(
    _ manager: MissionManager
  ) async -> (left: [String], reasons: [MissionID: String]) {
    var left: [String] = []
    var reasons: [MissionID: String] = [:]
    do {
      let statuses = try await manager.list()
      for status in statuses where device.wanted.contains(status.id) {
        guard let published = status.publishedVersion else { continue }
        // A mission behind a paused one continues with it: a request for the one is a request for
        // both.
        let isWaiting = status.reason?.kind == .waiting
        let isUnderWay =
          status.state == .downloading || status.state == .ready && !isWaiting
        if status.activeVersion == published, !status.isRepublished, !isUnderWay { continue }
        do throws(MissionError) {
          if !isUnderWay { try await manager.download([status.id]) }
          let why = status.reason.map { " (\($0.kind.rawValue): \($0))" } ?? ""
          left.append("\(status.id) is \(status.state?.rawValue ?? "not here")\(why)")
        } catch  where error.kind == .dependency {
          // The mission before it is not published any more.
          reasons[status.id] = error.description
        } catch {
          left.append("\(status.id): \(error.kind.rawValue): \(error)")
        }
      }
    } catch {
      left.append("missions cannot be listed: \(error)")
    }
    return (left, reasons)
  }

  private struct Catalogue: MissionCatalogue {
    let replica: Replica
    let name: SpaceName

    func space() async throws(MissionError) -> SpaceName { name }

    func missions() async throws(MissionError) -> [MissionRecord] {
      do { return try await replica.missions() } catch {
        throw MissionError(.database, "\(error)")
      }
    }
  }
}

extension SimulatedDevice {
  /// The folder of all mission data.
  var missionRoot: String { path + ".missions" }
}

import Ferry
import FerryConformance
import FerryMissions
import FerryProtocol
import FerrySyncClient

/// The part of a device's process for bundles: the product's states of bundles, and a shell for
/// each bundle opened by the user.
// SAFETY: touched on the scheduler's thread only.
final class DeviceBundles: @unchecked Sendable {
  private let device: SimulatedDevice
  private let shared: SimulatedDevice.Setting
  private let setting: BundleSetting
  private let replica: Replica
  private let seed: UInt64
  private var isAlive = true
  private var bundles: Bundles?
  private var shells: [BundleName: DeviceShell] = [:]

  init(
    _ device: SimulatedDevice, _ shared: SimulatedDevice.Setting, _ setting: BundleSetting,
    replica: Replica, seed: UInt64
  ) {
    (self.device, self.shared, self.setting) = (device, shared, setting)
    (self.replica, self.seed) = (replica, seed)
  }

  /// Ends all effects: it changes nothing from now on.
  func die() {
    isAlive = false
    for shell in shells.values { shell.die() }
    shells = [:]
    bundles = nil
  }

  /// Opens the states, and the shells opened by the user.
  func run(_ manager: MissionManager) async {
    var random = SeededRandom(seed, "bundle-restarts")
    while isAlive, bundles == nil {
      do {
        let opened = try await open(manager)
        guard isAlive else { return }
        bundles = opened
      } catch {
        log("start failed: \(error)")
        try? await shared.scheduler.sleep(.milliseconds(500 + random.below(2_000)))
      }
    }
    for name in device.opened.sorted() { show(name) }
  }

  private func open(_ manager: MissionManager) async throws -> Bundles {
    let path = device.missionRoot + "/content.db"
    let (scheduler, seed) = (shared.scheduler, seed)
    let executor = Processor(scheduler, random: SeededRandom(seed, "bundle-store")) { [self] in
      isAlive
    }
    let store = try await BundleStore.open(
      path, on: executor, fileSystem: shared.disk.fileSystem)
    if let planted = shared.planted {
      try shared.dice.quietly { try planted.plant(inBundlesAt: path, on: shared.disk) }
    }
    return replica.bundles(
      in: store, options: BundleOptions(shell: device.shell), missions: manager)
  }

  private func log(_ detail: String) {
    if isAlive { shared.trace.record(.bundle, device.name, detail) }
  }

  /// Passes the present state to the oracles.
  func look() { if isAlive, bundles != nil { device.lookAtBundles() } }

  /// Opens a shell, as soon as the process is ready for it.
  func show(_ name: BundleName) {
    guard isAlive, let bundles, shells[name] == nil else { return }
    let shell = DeviceShell(
      name, device, shared, setting, bundles: bundles, seed: seed &+ UInt64(shells.count))
    shells[name] = shell
    shell.run()
  }

  /// Performs the user's action on a bundle, if the process is ready for it.
  func perform(_ planned: PlannedBundle) {
    let id = BundleLibrary.id(planned.bundle, planned.version)
    switch planned.kind {
    case .open: show(id.name)
    case .name: shells[id.name]?.activate(id.version)
    case .damage: shells[id.name]?.breakNextPage()
    case .publish, .promote, .withdraw: break
    }
  }
}

extension SimulatedDevice {
  /// The version of the device's shell.
  var shell: BundleVersion { BundleLibrary.shell(of: name, seed: setting.bundles?.seed ?? 0) }

  /// Performs the user's action on a bundle. An opened shell is opened again by each process.
  func perform(_ planned: PlannedBundle) {
    if planned.kind == .open { opened.insert(BundleLibrary.name(planned.bundle)) }
    process?.missions?.bundles?.perform(planned)
  }

  func notifyBundles(_ event: BundleRunEvent) { setting.bundles?.notify(event, by: name) }

  /// Passes the catalogue to the oracles, and then the state of bundles on the disk at this moment.
  func lookAtBundles() {
    guard setting.bundles != nil else { return }
    if let catalogue = bundleCatalogue() {
      notifyBundles(.listed(device: name, at: setting.scheduler.now, catalogue))
    }
    if let bundles = bundlesOnDisk() {
      notifyBundles(.looked(device: name, at: setting.scheduler.now, bundles))
    }
  }

  /// The versions in the catalogue; `nil` before the first contact with the server.
  func bundleCatalogue() -> BundleCatalogue? {
    look(at: ledgers[0], isApart: false) { [shell] in
      try BundleCatalogue.read($0, shell: shell)
    } ?? nil
  }

  func bundlesOnDisk() -> [BundleEvidence]? {
    do {
      return try setting.dice.quietly {
        try BundleSnapshot.read(setting.disk, device: name, root: missionRoot)
      }
    } catch {
      setting.trace.record(.bundle, name, "cannot be looked at: \(error)")
      return nil
    }
  }
}

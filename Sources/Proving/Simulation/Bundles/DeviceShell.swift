import FerryConformance
import FerryMissions
import FerryProtocol
import FerryShell

/// A shell on a device for one bundle, as `ferry shell --sync` is. It updates the bundle, loads its
/// page again and again, and handles the reports of the pages.
// SAFETY: touched on the scheduler's thread only.
final class DeviceShell: @unchecked Sendable {
  private let name: BundleName
  private let device: SimulatedDevice
  private let shared: SimulatedDevice.Setting
  private let setting: BundleSetting
  private let bundles: Bundles
  private let source: Source
  private let follower: PageFollower
  private var random: SeededRandom
  private var isAlive = true
  private var pages = 0
  private var isNextPageBroken = false

  init(
    _ name: BundleName, _ device: SimulatedDevice, _ shared: SimulatedDevice.Setting,
    _ setting: BundleSetting, bundles: Bundles, seed: UInt64
  ) {
    (self.name, self.device, self.shared) = (name, device, shared)
    (self.setting, self.bundles) = (setting, bundles)
    random = SeededRandom(seed, "shell")
    let scheduler = shared.scheduler
    var surroundings = ShellSurroundings(now: { .microseconds(scheduler.now) }) {
      try await scheduler.sleep($0)
    }
    surroundings.executor = scheduler
    let source = Source(PublishedBundle(name, in: bundles), device)
    self.source = source
    // Each page is loaded again before long.
    follower = PageFollower(source, surroundings, log: { source.log($0) }, reload: { _ in })
  }

  /// Ends all effects: it changes nothing from now on.
  func die() {
    isAlive = false
    source.die()
  }

  func run() {
    shared.scheduler.task { [self] in
      while isAlive {
        await pause(1_000, 5_000)
        if isAlive { await update() }
      }
    }
    shared.scheduler.task { [self] in
      while isAlive {
        await pause(300, 4_000)
        if isAlive { await load() }
      }
    }
  }

  private func pause(_ least: Int, _ more: Int) async {
    try? await shared.scheduler.sleep(.milliseconds(least + random.below(more)))
  }

  private func log(_ detail: String) {
    if isAlive { shared.trace.record(.bundle, device.name, "\(name): \(detail)") }
  }

  private func look() { if isAlive { device.lookAtBundles() } }

  // MARK: Versions

  private func update() async {
    look()
    do {
      if try await bundles.update(name) { log("another version is in use") }
    } catch {
      log("no update: \(error)")
    }
    look()
  }

  /// Fetches the version named by the user, and puts it in use.
  func activate(_ version: BundleVersion) {
    let id = BundleID(name, version)
    shared.scheduler.task { [self] in
      guard isAlive else { return }
      device.notifyBundles(.naming(device: device.name, id))
      do {
        try await bundles.fetch(name, version: version)
        try await bundles.activate(name, version: version)
        log("the user put version \(version) in use")
      } catch {
        log("the user named version \(version): \(error)")
      }
      guard isAlive else { return }
      device.notifyBundles(.named(device: device.name, id))
      look()
    }
  }

  // MARK: Pages

  /// Makes the next page break, although the version may have worked before.
  func breakNextPage() { isNextPageBroken = true }

  /// Loads the page, as a shell does, and leaves it after a while.
  private func load() async {
    look()
    let version: PageVersion
    do throws(BundleSourceError) {
      version = try await source.next()
    } catch {
      look()
      return log("\(error)")
    }
    look()
    if isAlive, let number = BundleVersion(version.version) {
      await visit(BundleID(name, number), version)
    }
    if isAlive { await source.left(version) }
  }

  private func visit(_ id: BundleID, _ version: PageVersion) async {
    pages += 1
    let page = pages
    do {
      _ = try await source.file(version.entry, of: version)?.readAll()
    } catch {
      await follower.handle(.loaded(version), of: page)
      let failure = PageFailure(.crashed, "its document cannot be read: \(error)")
      return await follower.handle(.failed(failure), of: page)
    }
    await follower.handle(.loaded(version), of: page)
    await follower.handle(.connected, of: page)
    guard await show(id, version) else { return await leave(page, soon: false) }
    await behave(id, page)
  }

  /// Reads all files of a version. Returns whether the page has all of them.
  private func show(_ id: BundleID, _ version: PageVersion) async -> Bool {
    var found: [String: ContentHash] = [:]
    do {
      for path in source.paths(of: id, in: setting.library, space: device.space) {
        guard let path = BundlePath(path) else { continue }
        // A page asks for one file after another, and others may switch versions between.
        await pause(0, 50)
        guard let file = try await source.file(path, of: version) else { continue }
        found[path.text] = MissionLibrary.hash(try await file.readAll())
      }
    } catch {
      log("a file of version \(id.version) cannot be read: \(error)")
      return false
    }
    if isAlive { device.notifyBundles(.showed(device: device.name, id, found)) }
    return isAlive
  }

  private func behave(_ id: BundleID, _ page: Int) async {
    let isBroken = isNextPageBroken
    isNextPageBroken = false
    await pause(20, 1_500)
    guard isAlive else { return }
    switch setting.library.behaviour(of: id, on: device.name) {
    case .working:
      await follower.handle(.ready, of: page)
      look()
      if isBroken {
        await pause(20, 1_500)
        guard isAlive else { return }
        await follower.handle(.failed(PageFailure(.crashed, "it broke later")), of: page)
        look()
      }
      await leave(page, soon: true)
    case .silent: await leave(page, soon: false)
    case .throwing:
      await follower.handle(.failed(PageFailure(.crashed, "its script throws")), of: page)
      look()
      await leave(page, soon: true)
    case .vanishing:
      await follower.handle(.vanished, of: page)
      look()
    }
  }

  /// Leaves a page. A user waits for an empty page, but not always.
  private func leave(_ page: Int, soon isSoon: Bool) async {
    if isSoon || random.chance(1, in: 4) {
      await pause(200, 3_000)
    } else {
      await pause(10_500, 3_000)
    }
    look()
    if isAlive { await follower.handle(.closed, of: page) }
  }
}

/// The product's source of a bundle's pages. It passes the shell's decisions to the oracles.
// SAFETY: touched on the scheduler's thread only.
private final class Source: BundleSource, @unchecked Sendable {
  private let published: PublishedBundle
  private let device: SimulatedDevice
  private var isAlive = true

  init(_ published: PublishedBundle, _ device: SimulatedDevice) {
    (self.published, self.device) = (published, device)
  }

  func die() { isAlive = false }

  func log(_ event: ShellEvent) {
    guard isAlive else { return }
    let text =
      switch event {
      case .confirmed(let version): "\(version.name) \(version.version) works"
      case .failed(let version, let failure, let fallsBack):
        "\(version.name) \(version.version) failed: \(failure)"
          + (fallsBack ? "" : "; nothing is left")
      default: ""
      }
    device.setting.trace.record(.bundle, device.name, text)
  }

  /// Returns the paths of a version's files, by path.
  func paths(of id: BundleID, in library: BundleLibrary, space: SpaceName) -> [String] {
    library.manifest(id, in: space).items.map(\.path).sorted()
  }

  private func id(of version: PageVersion) -> BundleID? {
    guard let name = BundleName(version.name), let number = BundleVersion(version.version) else {
      return nil
    }
    return BundleID(name, number)
  }

  func next() async throws(BundleSourceError) -> PageVersion { try await published.next() }

  func file(
    _ path: BundlePath, of version: PageVersion
  ) async throws(BundleSourceError) -> ServedContent? {
    try await published.file(path, of: version)
  }

  func left(_ version: PageVersion) async { await published.left(version) }

  func confirm(_ version: PageVersion) async {
    guard isAlive, let id = id(of: version) else { return }
    device.notifyBundles(.confirming(device: device.name, id))
    await published.confirm(version)
    if isAlive { device.lookAtBundles() }
  }

  func fail(_ version: PageVersion, _ failure: PageFailure) async -> Bool {
    guard isAlive, let id = id(of: version) else { return false }
    let reason = BundleReason(bounding: failure.description).text
    device.notifyBundles(.failing(device: device.name, id, reason: reason))
    defer { if isAlive { device.lookAtBundles() } }
    return await published.fail(version, failure)
  }
}

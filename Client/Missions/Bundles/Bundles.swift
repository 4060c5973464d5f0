import FerryProtocol

/// The bundles of a space on this device: web apps in a shell (SPEC.md §31).
///
/// A version is fetched and checked as a mission, and put in use by one transaction. The page
/// confirms that it works; if it fails, the device falls back to the last good version, and reports
/// the failure with the next sync. Any number of processes may use the same bundles.
///
/// ```swift
/// let bundles = try await replica.bundles()
/// if try await bundles.update("board") { print("there is another version") }
/// let board = try await bundles.active("board")
/// ```
public final class Bundles: Sendable {
  /// The missions with the files.
  public let missions: MissionManager
  /// The options.
  public let options: BundleOptions
  let store: BundleStore
  let surroundings: BundleSurroundings

  package init(
    missions: MissionManager, store: BundleStore, options: BundleOptions = BundleOptions(),
    in surroundings: BundleSurroundings
  ) {
    self.missions = missions
    self.store = store
    self.options = options
    self.surroundings = surroundings
  }

  // MARK: Using

  /// Returns the version in use; `nil` if there is none.
  ///
  /// If the files are not here any more, the device falls back to the last good version first. A
  /// shell calls this for each page load, so a version never changes within a page.
  public func active(_ name: BundleName) async throws(BundleError) -> ActiveBundle? {
    var state = try await store.state(of: name)
    while let key = state.active {
      do throws(BundleError) {
        let bundle = try await bundle(name, key, isConfirmed: state.isConfirmed)
        if let bundle { return bundle }
      } catch {
        // A manifest refused by the rules of this release counts as absent.
        guard error.mission?.kind == .badManifest else { throw error }
      }
      state = try await leave(name, key, .absence)
    }
    return nil
  }

  /// Records that a page of this version works. Removes the files of versions no longer needed,
  /// unless an ``ActiveBundle`` of any process has them.
  public func confirm(_ bundle: ActiveBundle) async throws(BundleError) {
    let now = missions.surroundings.wallClock()
    try await store.change(bundle.name) { $0.confirm(bundle.key, at: now) }
    await removeOutdated(of: bundle.name)
  }

  /// Falls back from a failing version, and reports the reason with the next sync. The version is
  /// not activated automatically again. If another version is in use meanwhile, it stays.
  ///
  /// - Parameter reason: cut to 1,000 characters.
  /// - Returns: The version in use now; `nil` if there is no good one.
  @discardableResult
  public func fail(
    _ bundle: ActiveBundle, reason: String
  ) async throws(BundleError) -> ActiveBundle? {
    try await leave(bundle.name, bundle.key, .failure(BundleReason(bounding: reason)))
    return try await active(bundle.name)
  }

  /// Falls back from the version in use, as ``fail(_:reason:)`` does.
  ///
  /// - Throws: ``BundleError/Kind/notFound`` if no version is in use.
  @discardableResult
  public func fallBack(
    _ name: BundleName, reason: String
  ) async throws(BundleError) -> ActiveBundle? {
    guard let key = try await store.state(of: name).active else {
      throw BundleError(.notFound, "no version of bundle \(name) is in use")
    }
    try await leave(name, key, .failure(BundleReason(bounding: reason)))
    return try await active(name)
  }

  // MARK: Fetching and activating

  /// Fetches a version, and waits for the end of the download. Events of ``missions`` show the
  /// progress.
  ///
  /// - Parameter version: by default the latest version offered to this device without a failure
  ///   here.
  /// - Returns: The version now here.
  /// - Throws: ``BundleError/Kind/notFound``, ``BundleError/Kind/notOffered``,
  ///   ``BundleError/Kind/shellTooOld``; ``BundleError/Kind/mission`` if it cannot be fetched.
  @discardableResult
  public func fetch(
    _ name: BundleName, version: BundleVersion? = nil
  ) async throws(BundleError) -> BundleVersion {
    let offer = try await offer(of: name, version: version)
    do throws(MissionError) {
      try await missions.download([offer.id.mission])
      let status = try await missions.waitUntilIdle([offer.id.mission]).first
      guard status?.state == .done || status?.isDownloaded == true else {
        throw status?.reason ?? MissionError(.cancelled, "it is not complete")
      }
    } catch {
      throw BundleError(error)
    }
    return offer.id.version
  }

  /// Returns the version for ``fetch(_:version:)``.
  package func offer(
    of name: BundleName, version: BundleVersion?
  ) async throws(BundleError) -> (id: BundleID, manifest: ContentHash) {
    let choice = try await choice(of: name)
    guard let version else {
      if let best = choice.best { return (best.id, best.manifest) }
      throw nothing(in: choice, of: name)
    }
    guard let offer = choice.offers.first(where: { $0.id.version == version }) else {
      throw BundleError(.notFound, "there is no version \(version) of bundle \(name)")
    }
    try check(offer)
    return (offer.id, offer.manifest)
  }

  /// Puts a downloaded version in use: at the next page load, shells show it. The version is on
  /// trial until a page confirms it.
  ///
  /// If this shell is too old for the version in use, the device first falls back to the last good
  /// one for this shell.
  ///
  /// - Parameter version: by default the latest offered version without a failure. If the version
  ///   in use is as good, it stays. A named version gets another chance if it failed.
  /// - Throws: ``BundleError/Kind/notDownloaded``, ``BundleError/Kind/nothingToActivate`` and the
  ///   errors of ``fetch(_:version:)``.
  @discardableResult
  public func activate(
    _ name: BundleName, version: BundleVersion? = nil
  ) async throws(BundleError) -> ActiveBundle {
    let choice = try await choice(of: name)
    if let version {
      let offer = try named(version, in: choice, of: name)
      let bundle = try await usable(offer)
      try await store.change(name) { $0.activate(offer.key) }
      return bundle
    }
    if try await leaveTooNew(name, choice) { return try await activate(name) }
    if let offer = choice.next {
      let bundle = try await usable(offer)
      if try await replace(by: offer, choice).active == offer.key { return bundle }
    }
    if let bundle = try await active(name) { return bundle }
    let reason = nothing(in: choice, of: name)
    throw reason.kind == .shellTooOld ? reason : BundleError(.nothingToActivate, reason.message)
  }

  /// Fetches the right version for the device, and puts it in use. Returns true if another version
  /// is in use now.
  @discardableResult
  public func update(_ name: BundleName) async throws(BundleError) -> Bool {
    let before = try await choice(of: name)
    guard let next = before.next else { return false }
    try await fetch(name, version: next.id.version)
    let choice = try await choice(of: name)
    let offer = try named(next.id.version, in: choice, of: name)
    _ = try await usable(offer)
    // The rollout may have ended during the download.
    guard choice.isOffered(offer) else { return false }
    return try await replace(by: offer, choice).active != before.state.active
  }

  private func named(
    _ version: BundleVersion, in choice: BundleChoice, of name: BundleName
  ) throws(BundleError) -> BundleOffer {
    if let offer = choice.offers.first(where: { $0.id.version == version }) { return offer }
    throw BundleError(.notFound, "bundle \(name) has no version \(version)")
  }

  /// Returns a version that could be put in use.
  private func usable(_ offer: BundleOffer) async throws(BundleError) -> ActiveBundle {
    try check(offer)
    guard let bundle = try await bundle(offer.id.name, offer.key, isConfirmed: false) else {
      throw BundleError(.notDownloaded, "bundle \(offer.id) is not downloaded")
    }
    if let shell = bundle.minShell, shell > options.shell { throw tooOld(offer.id, shell) }
    return bundle
  }

  /// Leaves a version that needs a later shell, for the last good one for this shell. The program
  /// was replaced by an earlier one. Nothing is reported: the version has not failed, and a later
  /// program uses it again. Returns true if it was left.
  private func leaveTooNew(
    _ name: BundleName, _ choice: BundleChoice
  ) async throws(BundleError) -> Bool {
    guard let active = choice.state.active, try await needsLaterShell(name, active) == true else {
      return false
    }
    for former in choice.state.formers where !choice.isWithdrawn(former) {
      guard try await needsLaterShell(name, former) == false else { continue }
      return try await leave(name, active, .absence).active == former
    }
    return false
  }

  /// Returns true if a version needs a later shell, by the signed manifest; `nil` if the files are
  /// not here.
  private func needsLaterShell(
    _ name: BundleName, _ key: BundleKey
  ) async throws(BundleError) -> Bool? {
    guard let bundle = try await bundle(name, key, isConfirmed: false) else { return nil }
    return bundle.minShell.map { $0 > options.shell } ?? false
  }

  /// Puts a version in use without a user's request for it. Another program may have left it
  /// meanwhile, or put a later one in use: the transaction decides again.
  private func replace(
    by offer: BundleOffer, _ choice: BundleChoice
  ) async throws(BundleError) -> BundleState {
    try await store.change(offer.id.name) { state in
      var choice = choice
      choice.state = state
      if choice.replaces(offer) { state.activate(offer.key) }
    }
  }

  // MARK: Parts

  func choice(of name: BundleName) async throws(BundleError) -> BundleChoice {
    let records: [MissionRecord]
    let device: DeviceID
    do throws(MissionError) {
      records = try await missions.origin.published()
      device = try await surroundings.device()
    } catch {
      throw BundleError(error)
    }
    return BundleChoice(
      offers: records.compactMap { BundleOffer($0) }.filter { $0.id.name == name },
      state: try await store.state(of: name), device: device, shell: options.shell)
  }

  private func check(_ offer: BundleOffer) throws(BundleError) {
    if offer.listing.isWithdrawn {
      throw BundleError(.notOffered, "bundle \(offer.id) was withdrawn")
    }
    if let shell = offer.listing.minShell, shell > options.shell { throw tooOld(offer.id, shell) }
  }

  /// Returns the reason why this device uses no version of a bundle.
  private func nothing(in choice: BundleChoice, of name: BundleName) -> BundleError {
    if choice.offers.isEmpty {
      return BundleError(.notFound, "there is no bundle \(name) in the catalogue")
    }
    if let offer = choice.tooNew, let shell = offer.listing.minShell {
      return tooOld(offer.id, shell)
    }
    if let offer = choice.failed {
      return BundleError(
        .failedHere, "bundle \(offer.id) failed on this device, and no other version is offered")
    }
    return BundleError(.notOffered, "no version of bundle \(name) is offered to this device")
  }

  private func tooOld(_ id: BundleID, _ shell: BundleVersion) -> BundleError {
    BundleError(
      .shellTooOld, "bundle \(id) needs shell \(shell), and this is shell \(options.shell)")
  }

  /// Returns a version with all files; `nil` if they are not here.
  private func bundle(
    _ name: BundleName, _ key: BundleKey, isConfirmed: Bool
  ) async throws(BundleError) -> ActiveBundle? {
    let mission = BundleID(name, key.version).mission
    // Before the look at the files: they stay from then on.
    let lease = await lease(of: mission)
    do throws(MissionError) {
      guard try await missions.stored.heldManifest(mission) == key.manifest else { return nil }
      let manifest = try await missions.manifest(mission)
      guard let declared = manifest.bundle else {
        throw MissionError(.badManifest, "mission \(mission) is no bundle")
      }
      let folder = missions.files.isSealed ? nil : try await missions.path(mission)
      return ActiveBundle(
        manifest, declared, key: key, isConfirmed: isConfirmed, folder: folder,
        missions: missions, lease: lease)
    } catch  where error.kind == .notFound {
      return nil
    } catch {
      throw BundleError(error)
    }
  }

  /// Keeps the files of a version until the lock is released. Returns `nil` if no lock can be made,
  /// as on a full disk, or if another process does not end the removal of the files.
  private func lease(of mission: MissionID) async -> FileLock? {
    for _ in 0..<Self.leaseAttemptsMax {
      do throws(MissionError) {
        if let lease = try missions.files.share(.use(mission)) { return lease }
      } catch {
        return nil
      }
      // A removal takes milliseconds, or ends at once since the version is in use again.
      do { try await missions.surroundings.sleep(.milliseconds(10)) } catch { return nil }
    }
    return nil
  }

  private static let leaseAttemptsMax = 500

  @discardableResult
  func leave(
    _ name: BundleName, _ key: BundleKey, _ leaving: BundleState.Leaving
  ) async throws(BundleError) -> BundleState {
    let choice = try await choice(of: name)
    let held: [BundleKey]
    do throws(MissionError) {
      held = try await missions.stored.heldBundles(of: name)
    } catch {
      throw BundleError(error)
    }
    var usable: Set<BundleKey> = []
    for former in held where former != key && !choice.isWithdrawn(former) {
      // The program may have been replaced by an earlier one since the version worked.
      if (try? await needsLaterShell(name, former)) == false { usable.insert(former) }
    }
    let now = missions.surroundings.wallClock()
    return try await store.change(name) { [usable] state in
      state.leave(key, leaving, at: now) { usable.contains($0) }
    }
  }

  /// Removes the files of outdated versions that no process reads.
  package func removeOutdated(of name: BundleName) async {
    guard let held = try? await missions.stored.heldBundles(of: name),
      let state = try? await store.state(of: name)
    else { return }
    for key in held where state.isOutdated(key) {
      let mission = BundleID(name, key.version).mission
      guard let lock = try? missions.files.lock(.use(mission)) else { continue }
      defer { lock.release() }
      // Another program may have put it in use before the lock.
      guard let state = try? await store.state(of: name), state.isOutdated(key) else { continue }
      try? await missions.remove(mission)
    }
  }
}

/// The services of the replica for bundles; tests replace them.
package struct BundleSurroundings: Sendable {
  /// Returns the device's present identifier.
  package var device: @Sendable () async throws(MissionError) -> DeviceID
  /// Sends reports to the server.
  package var report: @Sendable ([BundleReport]) async throws -> Void

  package init(
    device: @escaping @Sendable () async throws(MissionError) -> DeviceID,
    report: @escaping @Sendable ([BundleReport]) async throws -> Void
  ) {
    self.device = device
    self.report = report
  }
}

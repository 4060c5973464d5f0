import FerryConformance
import FerryProtocol

extension World {
  func perform(_ planned: PlannedBundle) {
    if planned.isPublishers {
      bundlePublisher?.perform(planned)
    } else {
      devices[planned.device].perform(planned)
    }
  }

  /// Returns the open work on bundles, for a person.
  func bundlesLeft() -> [String] {
    guard let bundlePublisher else { return [] }
    return (bundlePublisher.isIdle ? [] : ["bundles wait to be published"])
      + devices.compactMap { device in
        device.bundlesLeft().map { "\(device.name) \($0)" }
      }
  }

  /// Makes the oracles judge the bundles of a space. The server answers in virtual time.
  func judgeBundles(in space: SpaceName, _ evidence: ServerEvidence) {
    guard let bundles, let bundlePublisher else { return }
    var published: [BundleID: BundleCatalogue.Entry] = [:]
    for (key, state) in evidence.records
    where key.table == MissionRecord.table && state.isAlive {
      guard let mission = MissionID(key.record.text), let id = BundleID(mission: mission) else {
        continue
      }
      published[id] = BundleCatalogue.Entry(state)
    }
    var counts: [BundleID: FinalBundleEvidence.Counts] = [:]
    for bundle in 0..<options.bundles
    where published.keys.contains(where: { $0.name == BundleLibrary.name(bundle) }) {
      guard let overview = wait(for: { await bundlePublisher.overview(of: bundle) }) else {
        report([Violation(oracle: "evidence", "the server does not show bundle \(bundle)")])
        return
      }
      for version in overview.versions {
        let tally = version.tally
        counts[version.entry.id] = FinalBundleEvidence.Counts(
          successes: Int(tally.successes), failures: Int(tally.failures))
      }
    }
    let found = devices.filter { $0.space == space }.compactMap { $0.finalBundles() }
    report(
      bundles.judge(FinalBundleEvidence(published: published, counts: counts, devices: found)))
  }

  /// Runs the world until an answer is here.
  private func wait<T: Sendable>(for answer: @escaping @Sendable () async -> T?) -> T? {
    let box = Answer<T>()
    scheduler.task {
      box.value = await answer()
      box.isHere = true
    }
    _ = scheduler.run(limit: 1_000_000) { box.isHere }
    return box.value
  }

  // SAFETY: touched on the scheduler's thread only.
  private final class Answer<T>: @unchecked Sendable {
    var value: T?
    var isHere = false
  }
}

extension BundleCatalogue.Entry {
  /// Reads the catalogue's record on the server.
  fileprivate init(_ state: RecordState) {
    func value(_ name: Name) -> Value? { state.columns.first { $0.name == name }?.value }
    self.init(share: .none)
    if case .integer(let share)? = value("rollout") {
      self.share = BundleShare(hundredths: share) ?? .none
    }
    if case .integer? = value("withdrawnAt") { isWithdrawn = true }
    if case .text(let shell)? = value("minShell") { minShell = BundleVersion(shell) }
  }
}

extension SimulatedDevice {
  /// Returns the difference between the bundles on the device and the expected ones; `nil` if there
  /// is none.
  fileprivate func bundlesLeft() -> String? {
    guard !opened.isEmpty else { return nil }
    guard let catalogue = bundleCatalogue(), let bundles = bundlesOnDisk() else {
      return "its bundles do not open"
    }
    for name in opened.sorted() {
      let bundle = bundles.first { $0.name == name }
      if let fault = BundlesDelivered.fault(of: bundle, name, catalogue) { return fault }
      guard let bundle else { continue }
      if let active = bundle.activeID, !bundle.isConfirmed { return "tries bundle \(active)" }
      if let outcome = bundle.outcomes.first(where: { !$0.isReported }) {
        return "has not reported the outcome of bundle \(name) \(outcome.version)"
      }
    }
    return nil
  }

  fileprivate func finalBundles() -> FinalBundleEvidence.Device? {
    guard let catalogue = bundleCatalogue(), let bundles = bundlesOnDisk() else { return nil }
    return FinalBundleEvidence.Device(
      name: name, id: catalogue.device, shell: shell, opened: opened, bundles: bundles)
  }
}

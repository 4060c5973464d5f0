import FerryConformance
import FerryProtocol

/// A publisher of bundles: publishes versions to a share of the devices, changes the share, and
/// withdraws versions.
// SAFETY: touched on the scheduler's thread only.
final class BundlePublisher: @unchecked Sendable {
  private let trace: Trace
  private let admin: SimulatedAdmin
  private let setting: BundleSetting
  private let missions: MissionSetting
  /// Returns the space of a bundle.
  private let space: (Int) -> SpaceName
  private var queue: PublisherQueue<PlannedBundle>?

  init(
    _ scheduler: Scheduler, trace: Trace, server: SimulatedServer, setting: BundleSetting,
    missions: MissionSetting, space: @escaping (Int) -> SpaceName
  ) {
    (self.trace, admin) = (trace, SimulatedAdmin(server, trace, .bundle))
    (self.setting, self.missions, self.space) = (setting, missions, space)
    queue = PublisherQueue(scheduler) { [unowned self] in await attempt($0) }
  }

  /// True if everything published is in force.
  var isIdle: Bool { queue?.isIdle ?? true }

  /// Stops when the world ends.
  func stop() { queue?.stop() }

  func perform(_ planned: PlannedBundle) { queue?.add(planned, for: planned.bundle) }

  private func attempt(_ planned: PlannedBundle) async -> Bool {
    let id = BundleLibrary.id(planned.bundle, planned.version)
    switch planned.kind {
    case .publish: return await publish(id, planned)
    case .withdraw: return await change(id, by: .withdrawal, planned)
    default:
      guard let share = BundleShare(hundredths: Int64(planned.share)) else { return true }
      return await change(id, by: .share(share), planned)
    }
  }

  private func publish(_ id: BundleID, _ planned: PlannedBundle) async -> Bool {
    let space = space(planned.bundle)
    let manifest = setting.library.manifest(id, in: space)
    guard await admin.upload(manifest, content: setting.library.bytes(of:)) else { return false }
    missions.notify(.publishing(space, id.mission, manifest.publishedItems), by: "publisher")
    setting.notify(
      .publishing(id, manifest.publishedItems.mapValues(\.hash)), by: "publisher")
    let path = "/v1/spaces/\(space)/missions/\(id.mission)?rollout=\(planned.share)"
    guard await admin.send(.put, path, manifest.encoded()).status == 200 else { return false }
    trace.record(.bundle, "server", "published \(id) for \(planned.share) of 10000")
    return true
  }

  private func change(
    _ id: BundleID, by change: BundleChange, _ planned: PlannedBundle
  ) async -> Bool {
    let path = "/v1/spaces/\(space(planned.bundle))/bundles/\(id.name)"
    let request = BundleChangeRequest(version: id.version, change: change)
    let status = await admin.send(.post, path, request.encoded()).status
    // An unpublished or withdrawn version has no rollout.
    guard [200, 404, 409].contains(status) else { return false }
    trace.record(.bundle, "server", "\(planned.kind.rawValue) \(id) \(planned.share)")
    return true
  }

  /// Returns a bundle as the server shows it to an admin; `nil` if there is none.
  func overview(of bundle: Int) async -> BundleOverview? {
    let path = "/v1/spaces/\(space(bundle))/bundles/\(BundleLibrary.name(bundle))"
    return try? BundleOverview(decoding: await admin.send(.get, path).body)
  }
}

import FerryConformance
import FerryProtocol

/// A publisher of missions: sends their content and then the mission itself to the server's
/// process.
// SAFETY: touched on the scheduler's thread only.
final class MissionPublisher: @unchecked Sendable {
  private let trace: Trace
  private let admin: SimulatedAdmin
  private let setting: MissionSetting
  private let options: WorldOptions
  private let space: (Int) -> SpaceName
  private var queue: PublisherQueue<PlannedMission>?

  init(
    _ scheduler: Scheduler, trace: Trace, server: SimulatedServer, setting: MissionSetting,
    options: WorldOptions, space: @escaping (Int) -> SpaceName
  ) {
    (self.trace, admin) = (trace, SimulatedAdmin(server, trace, .mission))
    (self.setting, self.options, self.space) = (setting, options, space)
    queue = PublisherQueue(scheduler) { [unowned self] in await attempt($0) }
  }

  /// True if everything published is in force.
  var isIdle: Bool { queue?.isIdle ?? true }

  /// Stops when the world ends.
  func stop() { queue?.stop() }

  func perform(_ planned: PlannedMission) { queue?.add(planned, for: planned.mission) }

  private func attempt(_ planned: PlannedMission) async -> Bool {
    let index = options.space(ofMission: planned.mission)
    let (space, id) = (self.space(index), MissionLibrary.id(planned.mission))
    let path = "/v1/spaces/\(space)/missions/\(id)"
    if planned.kind == .retract {
      let status = await admin.send(.delete, path).status
      guard status == 204 || status == 404 else { return false }
      trace.record(.mission, "server", "retracted \(id)")
      return true
    }
    let manifest = setting.library.manifest(
      planned, in: space, spaces: min(options.spaces, options.devices))
    guard await admin.upload(manifest, content: setting.library.bytes(of:)) else { return false }
    setting.notify(.publishing(space, id, manifest.publishedItems), by: "publisher")
    guard await admin.send(.put, path, manifest.encoded()).status == 200 else { return false }
    trace.record(.mission, "server", "published \(id), \(manifest.size) bytes")
    return true
  }
}

extension MissionManifest {
  /// The items as the oracles know them.
  var publishedItems: [String: PublishedItem] {
    Dictionary(
      items.map { item in
        let part = item.chunks.isEmpty ? item.size : chunkSize
        return (item.path, PublishedItem(hash: item.hash, size: item.size, partSize: part))
      }, uniquingKeysWith: { first, _ in first })
  }
}

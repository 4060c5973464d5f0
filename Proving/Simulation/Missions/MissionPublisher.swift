import FerryConformance
import FerryHTTPServer
import FerryNetworking
import FerryProtocol

/// A publisher of missions: sends their content and then the mission itself to the server's
/// process, and retries until a response arrives.
// SAFETY: touched on the scheduler's thread only.
final class MissionPublisher: @unchecked Sendable {
  private let scheduler: Scheduler
  private let trace: Trace
  private let server: SimulatedServer
  private let setting: MissionSetting
  private let options: WorldOptions
  private let space: (Int) -> SpaceName
  /// Publications of each mission without a response yet, the oldest first.
  private var waiting: [Int: [PlannedMission]] = [:]
  private var isStopped = false

  init(
    _ scheduler: Scheduler, trace: Trace, server: SimulatedServer, setting: MissionSetting,
    options: WorldOptions, space: @escaping (Int) -> SpaceName
  ) {
    (self.scheduler, self.trace, self.server) = (scheduler, trace, server)
    (self.setting, self.options, self.space) = (setting, options, space)
  }

  /// Whether everything that was published is in force.
  var isIdle: Bool { waiting.isEmpty }

  /// Stops when the world ends.
  func stop() { isStopped = true }

  func perform(_ planned: PlannedMission) {
    waiting[planned.mission, default: []].append(planned)
    guard waiting[planned.mission]?.count == 1 else { return }
    scheduler.task { [self] in await work(planned.mission) }
  }

  private func work(_ mission: Int) async {
    while !isStopped, let next = waiting[mission]?.first {
      if await attempt(next) {
        waiting[mission]?.removeFirst()
      } else {
        try? await scheduler.sleep(.milliseconds(700))
      }
    }
    waiting[mission] = nil
  }

  private func attempt(_ planned: PlannedMission) async -> Bool {
    let index = options.space(ofMission: planned.mission)
    let (space, id) = (self.space(index), MissionLibrary.id(planned.mission))
    let path = "/v1/spaces/\(space)/missions/\(id)"
    if planned.kind == .retract {
      let status = await send(.delete, path)
      guard status == 204 || status == 404 else { return false }
      trace.note(.mission, "server", "retracted \(id)")
      return true
    }
    let manifest = setting.library.manifest(
      planned, in: space, spaces: min(options.spaces, options.devices))
    for hash in Set(manifest.items.map(\.hash)).sorted() {
      let bytes = setting.library.bytes(of: hash)
      let status = await send(.put, "/v1/spaces/\(space)/blobs/\(hash)", bytes)
      guard status == 201 || status == 204 else { return false }
    }
    setting.tell(.publishing(space, id, Self.items(of: manifest)), by: "publisher")
    guard await send(.put, path, manifest.encoded()) == 200 else { return false }
    trace.note(.mission, "server", "published \(id), \(manifest.size) bytes")
    return true
  }

  private static func items(of manifest: MissionManifest) -> [String: PublishedItem] {
    Dictionary(
      manifest.items.map { item in
        let part = item.chunks.isEmpty ? item.size : manifest.chunkSize
        return (item.path, PublishedItem(hash: item.hash, size: item.size, partSize: part))
      }, uniquingKeysWith: { first, _ in first })
  }

  private func send(
    _ method: TransportMethod, _ path: String, _ body: [UInt8] = []
  ) async -> Int {
    let request = TransportRequest(method, "http://ferry.test" + path, body: body)
    guard let received = HTTPRequest(request, from: "publisher") else { return 400 }
    let response = await server.respond(to: received, message: 0)
    if case .bytes(let body) = response.body, response.status >= 400,
      let problem = Problem(decoding: body)
    {
      trace.note(.mission, "publisher", "\(method.rawValue) \(path): \(problem.detail)")
    }
    return response.status
  }
}

import FerryConformance
import FerryLaboratory
import FerryMissionServer
import FerryProtocol
import FerrySQLite
import Foundation

/// The data beside the store on the server of a world with missions.
///
/// The content is in a folder of this machine, whose name appears nowhere. Hashes name the files,
/// so it is the same in each run.
struct ServerMissions: Sendable {
  let directory: BlobDirectory
  let signer: MissionSigner
}

extension World {
  /// Creates the folder, in memory if the machine has a place for it.
  static func makeServerMissions(seed: UInt64, _ options: WorldOptions) throws -> ServerMissions? {
    guard options.missions > 0 || options.bundles > 0 else { return nil }
    let memory = "/dev/shm"
    let isThere = FileManager.default.isWritableFile(atPath: memory)
    let parent = isThere ? memory : NSTemporaryDirectory()
    var name = Array("\(parent)/ferry-sim-XXXXXX".utf8CString)
    guard mkdtemp(&name) != nil else { throw CocoaError(.fileWriteUnknown) }
    let directory = try BlobDirectory(
      String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    var random = SeededRandom(seed, "signer")
    let key = (0..<32).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    return ServerMissions(directory: directory, signer: try MissionSigner(secret: key))
  }

  /// The folder of the server's content while the world lasts.
  package var contentFolder: String? { server.missions?.directory.path }

  func removeServerMissions() {
    guard let missions = server.missions else { return }
    try? FileManager.default.removeItem(atPath: missions.directory.path)
  }

  func perform(_ planned: PlannedMission) {
    if planned.isPublishers {
      publisher?.perform(planned)
    } else {
      devices[planned.device].perform(planned)
    }
  }

  /// Makes all devices request their missing missions, as soon as all else is drained. Before that,
  /// the published missions are not known. Returns `true` if nothing is left.
  func requestMissions(isDrained: Bool) -> Bool {
    guard let publisher else { return isDrained }
    guard isDrained, publisher.isIdle else {
      for device in devices { device.process?.missions?.unsettle() }
      return false
    }
    var isSettled = true
    for device in devices {
      if device.process?.missions?.left != [] { isSettled = false }
      device.process?.missions?.requestMissing()
    }
    return isSettled
  }

  /// Returns the open work on missions, for a person.
  func missionsLeft() -> [String] {
    guard let publisher else { return [] }
    let left = devices.compactMap { device -> String? in
      guard let missions = device.process?.missions else { return nil }
      guard let left = missions.left else { return "\(device.name): its missions do not open" }
      return left.isEmpty ? nil : "\(device.name): " + left.joined(separator: ", ")
    }
    return (publisher.isIdle ? [] : ["missions wait to be published"]) + left
  }

  func judgeMissions(in space: SpaceName) throws {
    guard let missions else { return }
    let server = try server.storage.evidence(of: space)
    var published: [MissionID: Int64] = [:]
    for (key, state) in server.records where key.table == MissionRecord.table && state.isAlive {
      let version = state.columns.first { $0.name == "version" }?.value
      guard let id = MissionID(key.record.text), case .integer(let number)? = version else {
        continue
      }
      published[id] = number
    }
    let found = try devices.filter { $0.space == space }.map { try $0.finalMissions() }
    report(missions.judge(FinalMissionEvidence(published: published, devices: found)))
  }
}

extension SimulatedDevice {
  /// Performs the user's action on a mission. Requests outlive the process.
  func perform(_ planned: PlannedMission) {
    let id = MissionLibrary.id(planned.mission)
    switch planned.kind {
    case .ask: wanted.insert(id)
    case .cancel, .remove: wanted.remove(id)
    case .pause, .resume, .verify, .publish, .retract: break
    }
    process?.missions?.perform(planned)
  }

  /// Passes the disk's mission data at this moment to the oracles.
  ///
  /// - Parameter hash: The content whose file the process is about to remove.
  func lookAtMissions(removing hash: ContentHash? = nil) {
    guard let missions = setting.missions else { return }
    do {
      let evidence = try setting.dice.quietly {
        try MissionSnapshot.read(setting.disk, device: name, root: missionRoot)
      }
      if let hash {
        let owners = evidence.owners[hash] ?? []
        missions.notify(.removing(device: name, hash, owners: owners), by: name)
      }
      missions.notify(.looked(device: name, space, evidence), by: name)
    } catch {
      setting.trace.record(.mission, name, "cannot be looked at: \(error)")
    }
  }

  func notifyMissions(_ event: MissionRunEvent) { setting.missions?.notify(event, by: name) }

  fileprivate func finalMissions() throws -> FinalMissionEvidence.Device {
    try setting.dice.quietly {
      let store = try MissionSnapshot.read(
        setting.disk, device: name, root: missionRoot, withObjects: true)
      return FinalMissionEvidence.Device(
        name: name, store: store, catalogue: try catalogue(), wanted: wanted,
        reasons: process?.missions?.reasons ?? [:])
    }
  }

  private func catalogue() throws -> [MissionID: Int64] {
    guard let connection = process?.connection(of: ledgers[0]) else { return [:] }
    var versions: [MissionID: Int64] = [:]
    try connection.forEach("SELECT id, version FROM ferry_missions") { row in
      if let id = MissionID(row.text(0)) { versions[id] = row.int64(1) }
    }
    return versions
  }
}

import FerryProtocol

/// The missions in force in a space, beside which a mission is published; pure. It has no texts of
/// theirs, which may be long.
struct NearbyMissions: Sendable {
  private struct Mission {
    let id: MissionID
    let after: [MissionID]
    let signer: [UInt8]
  }

  /// By name.
  private let missions: [Mission]

  init(_ records: [MissionRecord]) { self.init(records.map(Self.mission)) }

  private init(_ missions: [Mission]) { self.missions = missions.sorted { $0.id < $1.id } }

  /// Reads the missions of a space page by page.
  init(in space: Int64, of store: any SyncStore) async throws(StoreError) {
    var (missions, place) = ([Mission](), MissionID?.none)
    repeat {
      let page = try await store.missions(in: space, after: place, limit: MissionPage.countMax)
      missions += page.records.map(Self.mission)
      place = page.next
    } while place != nil
    self.init(missions)
  }

  private static func mission(_ record: MissionRecord) -> Mission {
    Mission(id: record.id, after: record.after, signer: record.signer)
  }

  /// Returns the signer of the missions if none of them is signed by `key`: devices trust this
  /// signer, and would refuse a mission by `key`. `nil` if `key` signed one, or if there are none.
  func signer(besides key: [UInt8]) -> [UInt8]? {
    missions.contains { $0.signer == key } ? nil : missions.first?.signer
  }

  /// Returns the reason if a mission conflicts with the others; `nil` if it fits.
  func problem(with manifest: MissionManifest) -> Problem? {
    let folded = MissionPath.folded(manifest.id.value)
    let other = missions.first { $0.id != manifest.id && MissionPath.folded($0.id.value) == folded }
    if let other {
      return Problem(
        .missionConflict,
        "mission \(manifest.id) differs only in case from mission \(other.id), and some file "
          + "systems use one folder for both: choose another name")
    }
    guard let circle = circle(with: manifest) else { return nil }
    let path = circle.map(\.value).joined(separator: " → ")
    return Problem(.missionConflict, "these missions would wait for each other: \(path)")
  }

  /// Returns the circle from a mission through dependencies back to it; `nil` if there is none.
  private func circle(with manifest: MissionManifest) -> [MissionID]? {
    var after: [MissionID: [MissionID]] = [:]
    for mission in missions { after[mission.id] = mission.after }
    after[manifest.id] = manifest.after
    var reachedFrom: [MissionID: MissionID] = [:]
    var open = [manifest.id]
    while let id = open.popLast() {
      for next in after[id] ?? [] {
        if next == manifest.id {
          var way = [next, id]
          while let before = reachedFrom[way[way.count - 1]] { way.append(before) }
          return way.reversed()
        }
        guard reachedFrom[next] == nil else { continue }
        reachedFrom[next] = id
        open.append(next)
      }
    }
    return nil
  }
}

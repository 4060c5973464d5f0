import FerryProtocol

/// The missions in force in a space, beside which a mission is published; pure.
struct NearbyMissions: Sendable {
  private let records: [MissionRecord]

  init(_ records: [MissionRecord]) { self.records = records.sorted { $0.id < $1.id } }

  /// Returns the signer of the missions if none of them is signed by `key`: devices trust that
  /// signer, and would refuse a mission by `key`. `nil` if `key` signed one, or if there are none.
  func signer(besides key: [UInt8]) -> [UInt8]? {
    records.contains { $0.signer == key } ? nil : records.first?.signer
  }

  /// Returns the reason if a mission conflicts with the others; `nil` if it fits.
  func problem(with manifest: MissionManifest) -> Problem? {
    let folded = MissionPath.folded(manifest.id.value)
    let other = records.first { $0.id != manifest.id && MissionPath.folded($0.id.value) == folded }
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

  /// Returns the circle from a mission through its dependencies back to it; `nil` if there is none.
  private func circle(with manifest: MissionManifest) -> [MissionID]? {
    var after: [MissionID: [MissionID]] = [:]
    for record in records { after[record.id] = record.after }
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

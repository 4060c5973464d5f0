import FerryProtocol

/// Checks that at the end every device has the newest version of each requested mission. The
/// mission must still be published. If the version is missing, the product reports the reason.
package struct MissionsDelivered: MissionOracle {
  package static let name = "missions-delivered"

  package init() {}

  package mutating func judge(_ final: FinalMissionEvidence) -> [Violation] {
    final.devices.flatMap { device in
      device.wanted.sorted().compactMap { mission in
        guard let newest = final.published[mission], device.reasons[mission] == nil else {
          return nil
        }
        let active = device.store.versions.first { $0.mission == mission && $0.isActive }
        guard active?.version != newest else { return nil }
        let has = active.map { "version \($0.version)" } ?? "nothing"
        return Violation(
          oracle: Self.name,
          "\(device.name) requested mission \(mission), published as version \(newest), and has "
            + "\(has)")
      }
    }
  }
}

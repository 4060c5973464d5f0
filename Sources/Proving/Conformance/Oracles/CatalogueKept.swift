import FerryProtocol

/// At the end every replica's catalogue is the server's: no catalogue contains a retracted mission.
package struct CatalogueKept: MissionOracle {
  package static let name = "catalogue-kept"

  package init() {}

  package mutating func judge(_ final: FinalMissionEvidence) -> [Violation] {
    final.devices.filter { $0.catalogue != final.published }.map { device in
      Violation(
        oracle: Self.name,
        "\(device.name) has the missions \(Self.list(device.catalogue)), the server "
          + Self.list(final.published))
    }
  }

  private static func list(_ versions: [MissionID: Int64]) -> String {
    versions.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
      .joined(separator: ", ")
  }
}

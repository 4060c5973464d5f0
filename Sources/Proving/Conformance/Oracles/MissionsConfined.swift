import FerryProtocol

/// Checks that no file of a mission is outside of the store's folder, and that no one tries to
/// reach there.
package struct MissionsConfined: MissionOracle {
  package static let name = "missions-confined"

  package init() {}

  package mutating func see(_ event: MissionRunEvent) -> [Violation] {
    guard case .looked(let device, _, let evidence) = event, !evidence.strays.isEmpty else {
      return []
    }
    return [
      Violation(
        oracle: Self.name,
        "\(device) keeps or opens \(evidence.strays.prefix(3)) outside of the missions' folders")
    ]
  }
}

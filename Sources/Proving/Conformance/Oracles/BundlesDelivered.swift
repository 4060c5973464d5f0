import FerryProtocol

/// Checks the bundle versions in use at the end. On every device, each bundle opened by the user
/// has the latest version, among those offered to the device and without a failure there. A later
/// version already in use stays. No device uses a withdrawn version.
package struct BundlesDelivered: BundleOracle {
  package static let name = "bundles-delivered"

  package init() {}

  package mutating func judge(_ final: FinalBundleEvidence) -> [Violation] {
    final.devices.flatMap { device in
      let catalogue = BundleCatalogue(
        device: device.id, shell: device.shell, entries: final.published)
      return device.opened.sorted().compactMap { name in
        Self.fault(of: device.bundles.first { $0.name == name }, name, catalogue)
      }.map { Violation(oracle: Self.name, "\(device.name) \($0)") }
    }
  }

  /// Returns the difference between the version in use and the expected version of a device.
  package static func fault(
    of bundle: BundleEvidence?, _ name: BundleName, _ catalogue: BundleCatalogue
  ) -> String? {
    let failed = (bundle?.outcomes ?? []).filter(\.isBlocked).map { BundleID(name, $0.version) }
    let active = bundle?.activeID
    if let active, catalogue.entries[active]?.isWithdrawn == true {
      return "uses bundle \(active), which was withdrawn"
    }
    guard let best = catalogue.best(of: name, except: Set(failed)) else { return nil }
    guard let active else { return "uses no version of bundle \(name), and should use \(best)" }
    return active < best ? "uses bundle \(active), and should use \(best)" : nil
  }
}

import FerryProtocol

/// Checks that a failed version is not put in use again on the same device, unless a user names it.
package struct FailuresKept: BundleOracle {
  package static let name = "failures-kept"

  /// By device.
  private var failed: [String: Set<BundleID>] = [:]
  /// Versions named now by a user's request.
  private var named: [String: [BundleID]] = [:]

  package init() {}

  package mutating func see(_ event: BundleRunEvent) -> [Violation] {
    switch event {
    case .naming(let device, let id):
      named[device, default: []].append(id)
      failed[device]?.remove(id)
    case .named(let device, let id):
      if let place = named[device]?.firstIndex(of: id) { named[device]?.remove(at: place) }
      failed[device]?.remove(id)
    case .looked(let device, _, let bundles):
      return bundles.compactMap { look(at: $0, on: device) }
    case .died(let device): named[device] = nil
    case .wentBack(let device): (named[device], failed[device]) = (nil, nil)
    case .copied(let device, let original): failed[device] = failed[original]
    case .publishing, .listed, .showed, .confirming, .failing, .reporting, .reported: break
    }
    return []
  }

  private mutating func look(at bundle: BundleEvidence, on device: String) -> Violation? {
    for outcome in bundle.outcomes where outcome.isBlocked {
      let id = BundleID(bundle.name, outcome.version)
      // The request may have taken effect since, or may do so now.
      if named[device]?.contains(id) != true { failed[device, default: []].insert(id) }
    }
    guard let id = bundle.activeID, failed[device]?.contains(id) == true else { return nil }
    return Violation(
      oracle: Self.name, "\(device): bundle \(id) failed, and is in use again by itself")
  }
}

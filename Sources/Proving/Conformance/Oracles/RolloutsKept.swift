import FerryProtocol

/// Checks that a device puts a version in use only with permission:
///
/// - The rollout includes the device, a user names the version, or the device returns to a version
///   that has worked there.
/// - The version is not withdrawn, and the device's shell is not too old for it.
///
/// A device decides with the catalogue of this moment. A pull may change the catalogue before the
/// switch is on the disk, so the catalogues of the last seconds count.
package struct RolloutsKept: BundleOracle {
  package static let name = "rollouts-kept"
  /// The time from a decision to the effect, in microseconds.
  private static let delayMax: Int64 = 5_000_000

  private struct Known {
    /// In order; the first one was in force when the counted time began.
    var catalogues: [(at: Int64, catalogue: BundleCatalogue)] = []
    /// `nil` before the first look.
    var active: [BundleName: BundleVersion]?
    var lookedAt: Int64 = 0
    var worked: Set<BundleID> = []
    /// Versions named by users, with the time of the request.
    var named: [BundleID: Int] = [:]
    /// Versions whose request has ended since the last look.
    var ended: Set<BundleID> = []
  }

  private var devices: [String: Known] = [:]

  package init() {}

  package mutating func see(_ event: BundleRunEvent) -> [Violation] {
    switch event {
    case .listed(let device, let at, let catalogue):
      devices[device, default: Known()].catalogues.append((at, catalogue))
    case .looked(let device, let at, let bundles):
      var known = devices[device, default: Known()]
      defer { devices[device] = known }
      return Self.look(at: bundles, on: device, at, &known)
    case .confirming(let device, let id): devices[device, default: Known()].worked.insert(id)
    case .naming(let device, let id):
      devices[device, default: Known()].named[id, default: 0] += 1
    case .named(let device, let id):
      let count = devices[device]?.named[id] ?? 1
      devices[device]?.named[id] = count > 1 ? count - 1 : nil
      devices[device]?.ended.insert(id)
    case .died(let device):
      guard var known = devices[device] else { break }
      known.ended.formUnion(known.named.keys)
      known.named = [:]
      devices[device] = known
    case .wentBack(let device):
      devices[device]?.active = nil
      devices[device]?.catalogues = []
    case .copied(let device, let original):
      devices[device] = devices[original]
      devices[device]?.active = nil
    case .publishing, .showed, .failing, .reporting, .reported: break
    }
    return []
  }

  private static func look(
    at bundles: [BundleEvidence], on device: String, _ at: Int64, _ known: inout Known
  ) -> [Violation] {
    let first = known.lookedAt - delayMax
    while known.catalogues.count > 1, known.catalogues[1].at <= first {
      known.catalogues.removeFirst()
    }
    var found: [Violation] = []
    var active: [BundleName: BundleVersion] = [:]
    for bundle in bundles {
      active[bundle.name] = bundle.active
      if bundle.isConfirmed, let id = bundle.activeID { known.worked.insert(id) }
      guard let id = bundle.activeID, let before = known.active,
        before[bundle.name] != bundle.active
      else { continue }
      let isFree =
        known.worked.contains(id) || known.named[id] != nil || known.ended.contains(id)
      let mayBe = known.catalogues.contains { _, catalogue in
        isFree ? catalogue.permits(id) : catalogue.offers(id)
      }
      if !mayBe {
        found.append(
          Violation(
            oracle: Self.name,
            "\(device): bundle \(id) is in use, although it is "
              + (isFree ? "withdrawn or needs a later shell" : "not offered to this device")))
      }
    }
    (known.active, known.lookedAt, known.ended) = (active, at, [])
    return found
  }
}

import FerryProtocol

/// Checks that a device always shows one published version, whole, and never loses its last good
/// one.
///
/// - The version in use has exactly the files of its publication, also right after the end of a
///   process or a loss of power. A page reads exactly those files, and no file of another version.
/// - A version with a working page stays, or gives way to another one. A device without a version
///   in use never had a good one, or each good one kept by it has failed, was withdrawn, or needs a
///   later shell.
package struct BundlesKept: BundleOracle {
  package static let name = "bundles-kept"
  /// The newest good versions of which one has to be in use, unless all have failed or are barred.
  private static let goodMax = 2

  private struct Place: Hashable {
    var device: String
    var name: BundleName
  }

  private var published: [BundleID: [String: ContentHash]] = [:]
  /// The last good version first.
  private var good: [Place: [BundleVersion]] = [:]
  /// Good versions with a later failure, until a page of them works again.
  private var failed: [String: Set<BundleID>] = [:]
  /// Versions that were withdrawn, or that needed a later shell than the device had once.
  private var barred: [String: Set<BundleID>] = [:]

  package init() {}

  package mutating func see(_ event: BundleRunEvent) -> [Violation] {
    switch event {
    case .publishing(let id, let files): published[id] = files
    case .listed(let device, _, let catalogue):
      for id in catalogue.entries.keys where !catalogue.permits(id) {
        barred[device, default: []].insert(id)
      }
    case .failing(let device, let id, _):
      good[Place(device: device, name: id.name)]?.removeAll { $0 == id.version }
      failed[device, default: []].insert(id)
    case .confirming(let device, let id): failed[device]?.remove(id)
    case .looked(let device, _, let bundles):
      return bundles.compactMap { fault(of: $0, on: device) }.map {
        Violation(oracle: Self.name, "\(device): \($0)")
      }
    case .showed(let device, let id, let files):
      guard files != published[id] else { return [] }
      return [
        Violation(
          oracle: Self.name,
          "\(device): a page of bundle \(id) is no published version: "
            + difference(files, id))
      ]
    case .wentBack(let device):
      good = good.filter { $0.key.device != device }
      failed[device] = nil
    case .copied(let device, let original):
      for (place, versions) in good where place.device == original {
        good[Place(device: device, name: place.name)] = versions
      }
      (failed[device], barred[device]) = (failed[original], barred[original])
    case .naming, .named, .died, .reporting, .reported: break
    }
    return []
  }

  private mutating func fault(of bundle: BundleEvidence, on device: String) -> String? {
    let place = Place(device: device, name: bundle.name)
    guard let id = bundle.activeID else {
      let left = (good[place] ?? []).first { version in
        barred[device]?.contains(BundleID(bundle.name, version)) != true
      }
      return left.map { "no version of bundle \(bundle.name) is in use, and version \($0) works" }
    }
    if bundle.isConfirmed, failed[device]?.contains(id) != true {
      let before = (good[place] ?? []).filter { $0 != id.version }
      good[place] = Array(([id.version] + before).prefix(Self.goodMax))
    }
    guard let files = bundle.files else { return "bundle \(id) is in use, and is not complete" }
    guard files != published[id] else { return nil }
    return "bundle \(id) is in use, and is no published version: " + difference(files, id)
  }

  /// Describes the difference to the published files.
  private func difference(_ files: [String: ContentHash], _ id: BundleID) -> String {
    guard let published = published[id] else { return "there is none" }
    let missing = published.keys.filter { files[$0] == nil }.sorted()
    let other = published.keys.filter { files[$0] != nil && files[$0] != published[$0] }.sorted()
    let extra = files.keys.filter { published[$0] == nil }.sorted()
    return "\(missing) are missing, \(other) differ, \(extra) are extra"
  }
}

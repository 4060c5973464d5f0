import FerryMissions
import FerryProtocol

/// A bundle published by a space, as the source of a shell (SPEC.md §31).
///
/// A page load shows the latest downloaded version that is offered to this device and did not fail.
/// Failures are reported with the replica's next sync.
///
/// ```swift
/// let bundles = try await replica.bundles()
/// let shell = try Shell.start(PublishedBundle(name, in: bundles), services: registry)
/// ```
public actor PublishedBundle: BundleSource {
  /// Remembered versions without a page, since a failure may be reported after the page.
  private static let leftMax = 4

  private let name: BundleName
  private let bundles: Bundles
  private struct Served {
    let version: PageVersion
    var bundle: ActiveBundle
    /// The number of page loads with the version. The version's files stay as long as there is one.
    var loads: Int
  }
  /// The last one is the newest.
  private var served: [Served] = []

  /// Names a bundle of a replica.
  public init(_ name: BundleName, in bundles: Bundles) {
    (self.name, self.bundles) = (name, bundles)
  }

  public func next() async throws(BundleSourceError) -> PageVersion {
    let active: ActiveBundle?
    do throws(BundleError) {
      // A version not fetched yet waits for a later page load.
      if let switched = try? await bundles.activate(name) {
        active = switched
      } else {
        active = try await bundles.active(name)
      }
    } catch {
      throw fault("its files cannot be read", error)
    }
    guard let active else {
      throw BundleSourceError(
        "bundle \(name) cannot be shown",
        reason: "no version of it is on this device, or all failed",
        next: "fetch one with `ferry bundle fetch \(name)`")
    }
    let version = try version(of: active)
    let loads = served.first { $0.version == version }?.loads ?? 0
    served.removeAll { $0.version == version }
    served.append(Served(version: version, bundle: active, loads: loads + 1))
    return version
  }

  public func left(_ version: PageVersion) async {
    guard let place = served.firstIndex(where: { $0.version == version && $0.loads > 0 }) else {
      return
    }
    served[place].loads -= 1
    guard served[place].loads == 0 else { return }
    served[place].bundle = served[place].bundle.released()
    if served.count(where: { $0.loads == 0 }) > Self.leftMax,
      let oldest = served.firstIndex(where: { $0.loads == 0 })
    {
      served.remove(at: oldest)
    }
    await bundles.removeOutdated(of: name)
  }

  public func file(
    _ path: BundlePath, of version: PageVersion
  ) async throws(BundleSourceError) -> ServedContent? {
    guard let bundle = bundle(of: version) else {
      throw BundleSourceError(
        "version \(version.version) is no longer kept", reason: "later versions replaced it",
        next: "load the page again")
    }
    guard bundle.paths.contains(where: { $0.utf8.elementsEqual(path.text.utf8) }) else {
      return nil
    }
    do throws(BundleError) {
      let file = try await bundle.open(path.text)
      return ServedContent(size: file.size, mediaType: WebMediaType.of(path)) { offset, count in
        try await file.read(from: offset, count: count)
      }
    } catch {
      throw fault("\(path) cannot be read", error)
    }
  }

  public func confirm(_ version: PageVersion) async {
    guard let bundle = bundle(of: version) else { return }
    // If the disk fails, the version stays on trial, and the next page confirms it.
    try? await bundles.confirm(bundle)
  }

  public func fail(_ version: PageVersion, _ failure: PageFailure) async -> Bool {
    guard let bundle = bundle(of: version) else { return false }
    let active = try? await bundles.fail(bundle, reason: failure.description)
    return active != nil
  }

  private func bundle(of version: PageVersion) -> ActiveBundle? {
    served.last { $0.version == version }?.bundle
  }

  private func version(of active: ActiveBundle) throws(BundleSourceError) -> PageVersion {
    guard let entry = BundlePath(active.entry) else {
      throw BundleSourceError(
        "bundle \(name) cannot be shown", reason: "its entry “\(active.entry)” is no address",
        next: "ask the publisher for another version")
    }
    // A service with a name unknown to this shell is granted to nobody.
    let services = active.services.compactMap { service in
      ServicePattern(service.name, version: service.version ?? .first)
    }
    return PageVersion(
      name: name.value, version: active.version.description, entry: entry, services: services,
      content: active.manifest.description)
  }

  private func fault(_ event: String, _ error: BundleError) -> BundleSourceError {
    BundleSourceError(
      "bundle \(name): \(event)", reason: error.description,
      next: "fetch it again with `ferry bundle fetch \(name)`")
  }
}

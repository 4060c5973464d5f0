import FerryMissions
import FerryProtocol

/// A bundle that a space publishes, as the source of a shell (SPEC.md §31).
///
/// A page load takes the latest version whose files are here, that is offered to this device and that
/// did not fail. Failures are reported with the replica's next sync.
///
/// ```swift
/// let bundles = try await replica.bundles()
/// let shell = try Shell.start(PublishedBundle(name, in: bundles), services: registry)
/// ```
public actor PublishedBundle: BundleSource {
  /// Versions without a page that are remembered, since a failure may be reported after the page.
  private static let leftMax = 4
  /// The versions that one page load leaves because a shell cannot show them.
  private static let failuresMax = 10

  private let name: BundleName
  private let bundles: Bundles
  private struct Served {
    let version: PageVersion
    var bundle: ActiveBundle
    /// How many page loads have it. Its files stay as long as there is one.
    var loads: Int
  }
  /// The last one is the newest.
  private var served: [Served] = []

  /// Names a bundle of a replica.
  public init(_ name: BundleName, in bundles: Bundles) {
    (self.name, self.bundles) = (name, bundles)
  }

  public func next() async throws(BundleSourceError) -> PageVersion {
    for _ in 0..<Self.failuresMax {
      let active: ActiveBundle?
      do throws(BundleError) {
        active = try await latest()
      } catch {
        throw fault("its files cannot be read", error)
      }
      guard let active else { break }
      guard let entry = BundlePath(active.entry) else {
        try await fail(active, "its entry “\(active.entry)” is no address")
        continue
      }
      let version = version(of: active, entry)
      let loads = served.first { $0.version == version }?.loads ?? 0
      served.removeAll { $0.version == version }
      served.append(Served(version: version, bundle: active, loads: loads + 1))
      return version
    }
    throw BundleSourceError(
      "bundle \(name) cannot be shown",
      reason: "no version of it is on this device, or all failed",
      next: "fetch one with `ferry bundle fetch \(name)`")
  }

  /// Returns the version in use, after a switch to a later one that is here.
  private func latest() async throws(BundleError) -> ActiveBundle? {
    // A version that is not fetched yet waits for a later page load.
    if let switched = try? await bundles.activate(name) { return switched }
    return try await bundles.active(name)
  }

  /// Leaves a version that no shell of this release can show.
  private func fail(_ active: ActiveBundle, _ reason: String) async throws(BundleSourceError) {
    do throws(BundleError) {
      try await bundles.fail(active, reason: reason)
    } catch {
      throw fault("version \(active.version) cannot be left", error)
    }
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

  private func version(of active: ActiveBundle, _ entry: BundlePath) -> PageVersion {
    // A service whose name this shell does not know is granted to nobody.
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

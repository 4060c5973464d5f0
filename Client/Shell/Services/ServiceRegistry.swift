import FerryProtocol

/// The services of an app, and those granted to bundles.
///
/// A page may call a service only if the bundle declares it *and* the app grants it.
///
/// ```swift
/// let registry = ServiceRegistry(
///   DataServices(replica).all + [list], granting: ["data.query", "tasks"])
/// ```
public struct ServiceRegistry: Sendable {
  private struct Key: Hashable {
    let name: ServiceName
    let version: BundleVersion
  }

  private let services: [Key: Service]
  /// The services granted by the app to every bundle that declares them.
  public let granted: [ServicePattern]

  /// Creates a registry. The program ends if two services have the same name and version.
  public init(_ services: [Service], granting granted: [ServicePattern]) {
    self.services = Dictionary(
      services.map { (Key(name: $0.name, version: $0.version), $0) }
    ) { service, _ in
      preconditionFailure("the service \(service.name) is registered twice")
    }
    self.granted = granted
  }

  /// All services, by name and version.
  public var all: [Service] {
    services.values.sorted { ($0.name, $0.version) < ($1.name, $1.version) }
  }

  /// Granted patterns without a service of the app, such as misspelt ones.
  package var unknownGrants: [ServicePattern] {
    granted.filter { pattern in
      !services.values.contains { pattern.matches($0.name, version: $0.version) }
    }
  }

  /// Returns the service for a name on a page of a bundle.
  ///
  /// - Throws: `not_declared`, `not_granted` or `unknown_service`.
  func service(
    _ name: String, declared: [ServicePattern]
  ) throws(ServiceError) -> Service {
    guard let parsed = ServiceName(name) else {
      throw ServiceError("unknown_service", "“\(name.prefix(80))” is no name of a service")
    }
    guard let version = declared.filter({ $0.names(parsed) }).map(\.version).max() else {
      throw ServiceError("not_declared", "the bundle does not declare the service \(parsed)")
    }
    let found = services.values.filter { $0.name == parsed && $0.version.serves(version) }
    let open = found.filter { isGranted(parsed, $0.version) }
    if let latest = open.max(by: { $0.version < $1.version }) { return latest }
    guard found.isEmpty, isGranted(parsed, version) else {
      throw ServiceError("not_granted", "the app does not grant the service \(parsed)")
    }
    throw ServiceError(
      "unknown_service", "this app has no service \(parsed) in version \(version)")
  }

  private func isGranted(_ name: ServiceName, _ version: BundleVersion) -> Bool {
    granted.contains { $0.matches(name, version: version) }
  }

  /// Returns the declared services not granted by the app.
  public func withheld(from declared: [ServicePattern]) -> [ServicePattern] {
    declared.filter { pattern in !granted.contains { $0.covers(pattern) } }
  }
}

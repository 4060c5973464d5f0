/// Says before a request whether there is any network that could carry it (seed row S7.2).
///
/// It is asked before every attempt and must answer at once. Whoever cannot be certain that an
/// attempt would fail answers `reachable`: a wrong guess must never keep back what would succeed.
public protocol Connectivity: Sendable {
  /// What is known of the way to `host`: a name, or a literal address (IPv6 without brackets).
  func status(to host: String) -> ConnectivityStatus
}

/// What is known of the way to a host.
public enum ConnectivityStatus: Sendable, Equatable {
  /// There may be a way; the attempt tells.
  case reachable
  /// There is certainly none, and why.
  case offline(String)
}

/// Knows nothing and lets every attempt tell, as a simulated network wants it.
public struct AssumedConnectivity: Connectivity {
  /// The assumption.
  public init() {}

  /// Always reachable.
  public func status(to host: String) -> ConnectivityStatus { .reachable }
}

/// Checks before a request whether any network could carry it.
///
/// The client calls it before every attempt, so it must return at once. It returns `reachable`
/// unless an attempt would certainly fail: a wrong guess must never prevent a successful attempt.
public protocol Connectivity: Sendable {
  /// Returns the status of the connection to `host`: a name, or a literal address (IPv6 without
  /// brackets).
  func status(to host: String) -> ConnectivityStatus
}

/// The status of the connection to a host.
public enum ConnectivityStatus: Sendable, Equatable {
  /// A connection is possible; the attempt decides.
  case reachable
  /// There is certainly no connection; has the reason.
  case offline(String)
}

/// Assumes a connection, so every attempt decides, as a simulated network requires.
public struct AssumedConnectivity: Connectivity {
  /// Creates the assumption.
  public init() {}

  /// Returns `reachable` for every host.
  public func status(to host: String) -> ConnectivityStatus { .reachable }
}

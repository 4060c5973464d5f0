/// The version of Ferry's client, as servers see it.
package enum ClientVersion {
  /// Semantic versioning.
  package static let current = "0.1.0"
}

/// The settings of a transport, for all requests.
///
/// If a transport does not support a setting, each request fails with kind `other`, and the message
/// has the setting's name. ``URLSessionTransport`` lists its unsupported settings.
public struct TransportConfiguration: Sendable {
  /// The `User-Agent`, unless a request names another one: a product with the version (RFC 9110
  /// §10.1.5).
  public var userAgent = "ferry/\(ClientVersion.current)"
  /// The proxy's address; `nil` for the environment's, "" uses none.
  public var proxy: String?
  /// A PEM file of certificate authorities to trust besides the system's, for all requests.
  public var certificateAuthorities: String?
  /// The most connections to one host; further requests wait. `nil` for no limit: a stream keeps
  /// its connection, and waiting behind streams would be endless.
  public var connectionsPerHostMax: Int?
  /// The number of connections to keep open for reuse.
  public var idleConnectionsMax = 256
  /// The bandwidth of all transfers together; `CurlTransport.limitBandwidth(_:)` changes it later.
  public var bandwidth = BandwidthLimits()

  /// Creates the defaults.
  public init() {}
}

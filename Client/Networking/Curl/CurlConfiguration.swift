extension CurlTransport {
  /// The settings of a transport, for all its requests.
  public struct Configuration: Sendable {
    /// The `User-Agent`, unless a request names its own.
    public var userAgent = "ferry"
    /// The proxy's address; `nil` takes it from the environment, "" uses none.
    public var proxy: String?
    /// A PEM file of certificate authorities to trust besides the system's, for all requests.
    public var certificateAuthorities: String?
    /// The most connections to one host; further requests wait. `nil` for no limit: a stream keeps
    /// its connection, and waiting behind streams would be endless.
    public var connectionsPerHostMax: Int?
    /// The number of connections to keep open for reuse.
    public var idleConnectionsMax = 256
    /// The bandwidth of all transfers together; `CurlTransport.limitBandwidth(_:)` changes it
    /// later.
    public var bandwidth = BandwidthLimits()

    /// Creates the defaults.
    public init() {}
  }
}

/// The hosts that need no proxy.
enum ProxyExceptions {
  /// Returns curl's list: the environment's exceptions, and always loopback.
  static func list(environment: [String: String]) -> String {
    let given = environment["no_proxy"] ?? environment["NO_PROXY"] ?? ""
    // "*" means every host only if it is the whole list.
    if given == "*" { return given }
    let loopback = "localhost,127.0.0.0/8,::1"
    return given.isEmpty ? loopback : given + "," + loopback
  }
}

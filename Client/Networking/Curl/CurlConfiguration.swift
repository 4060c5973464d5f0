extension CurlTransport {
  /// What holds for every request of a transport.
  public struct Configuration: Sendable {
    /// The `User-Agent`, unless a request names its own.
    public var userAgent = "ferry"
    /// The proxy's address; nil takes it from the environment, "" uses none.
    public var proxy: String?
    /// A PEM file of certificate authorities to trust besides the system's, for all requests.
    public var certificateAuthorities: String?
    /// How many connections to open to one host; further requests wait. Nil for no limit: a
    /// stream holds its connection, and waiting behind streams would be endless.
    public var connectionsPerHostMax: Int?
    /// How many connections to keep open for reuse.
    public var idleConnectionsMax = 256
    /// What all transfers together may use; `CurlTransport.limitBandwidth(_:)` changes it later.
    public var bandwidth = BandwidthLimits()

    /// The defaults.
    public init() {}
  }
}

/// Which hosts no proxy is asked for.
enum ProxyExceptions {
  /// curl's list: what the environment says, and loopback always.
  static func list(environment: [String: String]) -> String {
    let given = environment["no_proxy"] ?? environment["NO_PROXY"] ?? ""
    // "*" means every host only while it stands alone.
    if given == "*" { return given }
    let loopback = "localhost,127.0.0.0/8,::1"
    return given.isEmpty ? loopback : given + "," + loopback
  }
}

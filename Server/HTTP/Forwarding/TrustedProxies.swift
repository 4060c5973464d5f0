/// The proxies whose word about a client's address counts; pure.
package struct TrustedProxies: Sendable, Equatable {
  /// The header in which the proxies name their clients. The other one may come from a client.
  package enum Header: String, Sendable, CaseIterable {
    case forwardedFor = "x-forwarded-for"
    /// RFC 7239.
    case forwarded
  }

  /// The most trusted proxies on the way of a request.
  static let hopsMax = 16

  package var ranges: [AddressRange]
  package var header: Header

  package init(_ ranges: [AddressRange] = [], header: Header = .forwardedFor) {
    self.ranges = ranges
    self.header = header
  }

  package func contains(_ address: IPAddress) -> Bool {
    ranges.contains { $0.contains(address) }
  }

  /// Returns the address of a request's client: the peer's, unless a trusted proxy is the peer and
  /// names another. Headers are read from their end, up to the first address outside of the trusted
  /// proxies. Anyone may have written the rest.
  ///
  /// Throws `malformedForwarding` if a trusted proxy names no address.
  package func client(
    of peer: IPAddress, _ headers: HTTPHeaders
  ) throws(HTTPFailure) -> IPAddress {
    guard contains(peer) else { return peer }
    var (client, hops) = (peer, 0)
    for line in headers.values(of: header.rawValue).reversed() {
      guard contains(client) else { return client }
      for named in try addresses(in: line) {
        guard contains(client) else { return client }
        guard let named, hops < Self.hopsMax else { throw .malformedForwarding }
        (client, hops) = (named, hops + 1)
      }
    }
    guard hops > 0 || headers[header.rawValue] == nil else { throw .malformedForwarding }
    return client
  }

  /// Returns the addresses in a line, the last one first; `nil` for other text.
  private func addresses(in line: String) throws(HTTPFailure) -> [IPAddress?] {
    switch header {
    case .forwardedFor:
      ForwardedElements.ofList(line).prefix(Self.hopsMax + 1)
        .map { ForwardedElements.address($0) }
    case .forwarded:
      try ForwardedElements.ofForwarded(line).map { $0.flatMap { ForwardedElements.address($0) } }
    }
  }
}

import FerryPlatform

/// Decides when a host is certainly unreachable: a pure rule.
///
/// It errs on one side only. A failed attempt costs little, since without a network it fails at
/// once. If the rule wrongly prevents an attempt, nobody can get around this.
struct ConnectivityRule {
  /// The facts about the machine, computed only when they are needed.
  struct Facts {
    /// Returns true if the kernel has a route to a literal address, or if this is unknown.
    var hasRoute: (String) -> Bool
    /// The interfaces; `nil` if they cannot be listed.
    var interfaces: () -> [NetworkInterface]?
    /// The machine's own addresses for a name, as in `/etc/hosts`.
    var localAddresses: (_ name: String) -> [String]
    /// The name of the machine.
    var ownName: () -> String
    /// The addresses of the name servers in use.
    var nameServers: () -> [String]
    /// Returns the hosts of the proxies possibly in use.
    var proxies: () -> [String]
  }

  let facts: Facts

  /// Returns the certain status of `host`.
  func status(to host: String) -> ConnectivityStatus {
    let host = Self.normalised(host)
    if canReach(host) || facts.proxies().contains(where: { canReach(Self.normalised($0)) }) {
      return .reachable
    }
    return .offline(
      HostName.isAddress(host)
        ? "no network reaches \(host)"
        : "there is no network: no active interface can look up \(host)")
  }

  private func canReach(_ host: String) -> Bool {
    if HostName.isLoopback(host) { return true }
    if HostName.isAddress(host) { return facts.hasRoute(host) }
    return hasUsableInterface || hasDefaultRoute || isKnownHere(host)
  }

  private var hasUsableInterface: Bool {
    guard let interfaces = facts.interfaces() else { return true }
    return interfaces.contains { !$0.isLoopback && $0.isUp && $0.isRunning && $0.hasAddress }
  }

  /// True if there is a default route. Drivers report an interface in different ways, so the
  /// kernel's own decision counts as well. The addresses are those for documentation (RFC 5737, RFC
  /// 3849); this sends no packet.
  private var hasDefaultRoute: Bool {
    facts.hasRoute("192.0.2.1") || facts.hasRoute("2001:db8::1")
  }

  /// Returns true if a name is one of this machine's; it works without any interface.
  private func isKnownHere(_ name: String) -> Bool {
    if Self.normalised(facts.ownName()) == name { return true }
    if facts.localAddresses(name).contains(where: {
      HostName.isLoopback($0) || facts.hasRoute($0)
    }) {
      return true
    }
    // An own name server on this machine may know any name. The stub of systemd-resolved, found on
    // most machines, knows none without a network.
    return facts.nameServers().contains {
      HostName.isLoopback($0) && $0 != "127.0.0.53" && $0 != "127.0.0.54"
    }
  }

  private static func normalised(_ host: String) -> String {
    let name = host.lowercasedASCII
    return name.start(before: ".").map(String.init) ?? name
  }
}

/// The relevant facts about one network interface.
struct NetworkInterface: Equatable {
  var name: String
  var isLoopback = false
  var isUp = true
  /// True if the link has a peer.
  var isRunning = true
  /// True if it has an IP address.
  var hasAddress = true
}

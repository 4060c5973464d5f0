/// When it is certain that a host cannot be reached: a pure rule.
///
/// It errs on one side only. An attempt that fails costs little, since without a network it fails
/// at once; one that is kept back although it would succeed is a fault that nobody can get around.
struct ConnectivityRule {
  /// What is known of the machine, asked for only as far as needed.
  struct Facts {
    /// Whether the kernel knows a way to a literal address; true where that cannot be found out.
    var hasRoute: (String) -> Bool
    /// The interfaces; nil where they cannot be listed.
    var interfaces: () -> [NetworkInterface]?
    /// The addresses that the machine itself knows a name by, as `/etc/hosts` has them.
    var localAddresses: (_ name: String) -> [String]
    /// The name of the machine.
    var ownName: () -> String
    /// The addresses of the name servers in use.
    var nameServers: () -> [String]
    /// The hosts of the proxies that may be in use.
    var proxies: () -> [String]
  }

  let facts: Facts

  /// What is certain of `host`.
  func status(to host: String) -> ConnectivityStatus {
    let host = Self.normalised(host)
    if canReach(host) || facts.proxies().contains(where: { canReach(Self.normalised($0)) }) {
      return .reachable
    }
    return .offline(
      HostName.isAddress(host)
        ? "there is no network by which \(host) could be reached"
        : "there is no network: no interface is up by which \(host) could be found")
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

  /// Drivers differ in what they say of an interface; the kernel's own decision counts as well.
  /// The addresses are those for documentation (RFC 5737, RFC 3849), and nothing is sent there.
  private var hasDefaultRoute: Bool {
    facts.hasRoute("192.0.2.1") || facts.hasRoute("2001:db8::1")
  }

  /// Without any interface a name can still be one of this machine's.
  private func isKnownHere(_ name: String) -> Bool {
    if Self.normalised(facts.ownName()) == name { return true }
    if facts.localAddresses(name).contains(where: {
      HostName.isLoopback($0) || facts.hasRoute($0)
    }) {
      return true
    }
    // A name server of one's own on this machine may know any name; systemd-resolved's stub,
    // which is on most machines, knows none without a network.
    return facts.nameServers().contains {
      HostName.isLoopback($0) && $0 != "127.0.0.53" && $0 != "127.0.0.54"
    }
  }

  private static func normalised(_ host: String) -> String {
    let name = host.lowercased()
    return name.hasSuffix(".") ? String(name.dropLast()) : name
  }
}

/// One network interface, as far as it matters here.
struct NetworkInterface: Equatable {
  var name: String
  var isLoopback = false
  var isUp = true
  /// Whether there is something at the other end.
  var isRunning = true
  /// Whether it has an IP address.
  var hasAddress = true
}

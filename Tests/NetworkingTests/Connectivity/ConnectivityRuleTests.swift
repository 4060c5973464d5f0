import FerryTestSupport
import Testing

@testable import FerryNetworking

@Suite("The rule for being offline", .hangLimit)
struct ConnectivityRuleTests {
  /// Returns the facts of a machine without a network, except the ones given by a test.
  private func facts(
    routes: [String] = [], interfaces: [NetworkInterface]? = [loopback],
    names: [String: [String]] = [:], nameServers: [String] = ["127.0.0.53"],
    proxies: [String] = []
  ) -> ConnectivityRule.Facts {
    ConnectivityRule.Facts(
      hasRoute: { routes.contains($0) }, interfaces: { interfaces },
      localAddresses: { names[$0] ?? [] }, ownName: { "Laptop" }, nameServers: { nameServers },
      proxies: { proxies })
  }

  private static let loopback = NetworkInterface(name: "lo", isLoopback: true)

  private func isReachable(_ host: String, _ facts: ConnectivityRule.Facts) -> Bool {
    ConnectivityRule(facts: facts).status(to: host) == .reachable
  }

  @Test("a host is unreachable without an interface, a route and any way to resolve a name")
  func offline() {
    for host in ["example.org", "192.0.2.7", "2001:db8::7", "10.0.0.1", "notlocalhost"] {
      #expect(!isReachable(host, facts()), "\(host)")
    }
  }

  @Test(
    "this machine itself is always reachable",
    arguments: [
      "127.0.0.1", "127.8.9.10", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "localhost",
      "LOCALHOST.", "app.localhost", "laptop", "Laptop.",
    ])
  func ownMachine(host: String) {
    #expect(isReachable(host, facts()))
  }

  @Test("a host may be reachable if an interface with an address is up, even a container's")
  func interface() {
    let up = NetworkInterface(name: "eth0")
    #expect(isReachable("example.org", facts(interfaces: [Self.loopback, up])))
    var others: [NetworkInterface] = []
    for change in [\NetworkInterface.isUp, \.isRunning, \.hasAddress] {
      var interface = NetworkInterface(name: "docker0")
      interface[keyPath: change] = false
      others.append(interface)
    }
    #expect(!isReachable("example.org", facts(interfaces: [Self.loopback] + others)))
  }

  @Test("a host may be reachable if the kernel does not answer")
  func unknown() {
    #expect(isReachable("example.org", facts(interfaces: nil)))
  }

  @Test("an address is reachable by its route only, with any interfaces")
  func routes() {
    let down = NetworkInterface(name: "tun0", isRunning: false)
    let facts = facts(routes: ["10.1.2.3"], interfaces: [down])
    #expect(isReachable("10.1.2.3", facts))
    #expect(!isReachable("10.1.2.4", facts))
    #expect(!isReachable("example.org", facts))
  }

  @Test(
    "a name may be reachable if there is a default route", arguments: ["192.0.2.1", "2001:db8::1"])
  func defaultRoute(address: String) {
    #expect(isReachable("example.org", facts(routes: [address])))
  }

  @Test("a name in the hosts file is reachable if its address is")
  func hostsFile() {
    let names = ["ferry.test": ["127.0.0.1"], "far.test": ["10.0.0.9"], "near.test": ["10.0.0.1"]]
    let facts = facts(routes: ["10.0.0.1"], names: names)
    #expect(isReachable("ferry.test", facts))
    #expect(isReachable("Ferry.Test", facts))
    #expect(isReachable("near.test", facts))
    #expect(!isReachable("far.test", facts))
  }

  @Test("a name may be reachable if a name server runs on this machine")
  func ownNameServer() {
    #expect(isReachable("db.internal", facts(nameServers: ["127.0.0.11"])))
    #expect(isReachable("db.internal", facts(nameServers: ["::1"])))
    #expect(!isReachable("db.internal", facts(nameServers: ["10.0.0.2", "127.0.0.53"])))
  }

  @Test("a host may be reachable through a reachable proxy")
  func proxy() {
    #expect(isReachable("example.org", facts(proxies: ["127.0.0.1"])))
    #expect(isReachable("192.0.2.7", facts(proxies: ["far.test", "LocalHost"])))
    #expect(!isReachable("example.org", facts(proxies: ["proxy.example"])))
  }

  @Test("an offline status contains its reason")
  func reason() {
    #expect(
      ConnectivityRule(facts: facts()).status(to: "192.0.2.7")
        == .offline("no network reaches 192.0.2.7"))
  }
}

@Suite("Parsing the system's files", .hangLimit)
struct SystemFilesTests {
  @Test("a hosts file is parsed into the addresses of a name")
  func hosts() {
    let text = """
      # comment ferry.test
      127.0.0.1\tlocalhost ferry.test # other.test
      ::1 Ferry.Test
      10.0.0.1 ferry.test.example
      broken
      """
    #expect(SystemFiles.addresses(of: "ferry.test", inHosts: text) == ["127.0.0.1", "::1"])
    #expect(SystemFiles.addresses(of: "other.test", inHosts: text) == [])
  }

  @Test("a resolver's file is parsed into its name servers")
  func nameServers() {
    let text = "search a b\nnameserver 127.0.0.11\n#nameserver 1.1.1.1\n nameserver\t::1 # x\n"
    #expect(SystemFiles.nameServers(text) == ["127.0.0.11", "::1"])
  }

  @Test(
    "a proxy's address is parsed into its host",
    arguments: [
      ("http://proxy:3128", "proxy"), ("proxy.example", "proxy.example"),
      ("socks5h://user:pw@10.0.0.1:1080/x", "10.0.0.1"), ("http://[::1]:80", "::1"),
    ])
  func proxies(address: String, host: String) {
    #expect(SystemFiles.proxies(address, environment: ["http_proxy": "http://x"]) == [host])
    #expect(SystemFiles.proxies(nil, environment: ["https_proxy": address]) == [host])
    #expect(SystemFiles.proxies("", environment: ["https_proxy": address]) == [])
    #expect(SystemFiles.proxies(nil, environment: [:]) == [])
  }
}

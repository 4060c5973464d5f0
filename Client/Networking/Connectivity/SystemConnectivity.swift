import FerryPlatform
import Foundation

/// Asks the kernel for interfaces and routes, without sending a packet.
///
/// It takes about ten microseconds, and is correct at the time of the call: it caches nothing.
public struct SystemConnectivity: Connectivity {
  private let proxy: String?

  /// Creates the check.
  ///
  /// - Parameter proxy: the address of the transport's proxy; without it, those of the environment.
  public init(proxy: String? = nil) { self.proxy = proxy }

  /// Returns the certain status of the connection to `host`.
  public func status(to host: String) -> ConnectivityStatus {
    ConnectivityRule(facts: facts).status(to: host)
  }

  private var facts: ConnectivityRule.Facts {
    ConnectivityRule.Facts(
      hasRoute: Self.hasRoute, interfaces: Self.interfaces,
      localAddresses: { name in
        SystemFiles.addresses(of: name, inHosts: Self.text(of: "/etc/hosts"))
      },
      ownName: Self.ownName,
      nameServers: { SystemFiles.nameServers(Self.text(of: "/etc/resolv.conf")) },
      proxies: { [proxy] in
        SystemFiles.proxies(proxy, environment: ProcessInfo.processInfo.environment)
      })
  }

  /// Returns true if the kernel has a route to a literal address.
  ///
  /// Connecting a datagram socket looks up a route and sends nothing.
  static func hasRoute(_ host: String) -> Bool {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
    hints.ai_socktype = Platform.datagramSocket
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, "9", &hints, &found) == 0, let found else { return true }
    defer { freeaddrinfo(found) }
    let probe = socket(found.pointee.ai_family, Platform.datagramSocket, 0)
    // A machine without this family of addresses has no route to any of them.
    guard probe >= 0 else { return errno != EAFNOSUPPORT }
    defer { close(probe) }
    _ = fcntl(probe, F_SETFD, FD_CLOEXEC)
    if connect(probe, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0 { return true }
    return ![ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL].contains(errno)
  }

  /// Returns the interfaces with their addresses; `nil` if the kernel does not list them.
  static func interfaces() -> [NetworkInterface]? {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return nil }
    defer { freeifaddrs(first) }
    var interfaces: [NetworkInterface] = []
    var next = first
    while let entry = next?.pointee {
      let flags = Int32(bitPattern: entry.ifa_flags)
      let family = entry.ifa_addr.map { Int32($0.pointee.sa_family) }
      interfaces.append(
        NetworkInterface(
          name: String(cString: entry.ifa_name),
          isLoopback: flags & Int32(IFF_LOOPBACK) != 0,
          isUp: flags & Int32(IFF_UP) != 0,
          isRunning: flags & Int32(IFF_RUNNING) != 0,
          hasAddress: family == AF_INET || family == AF_INET6))
      next = entry.ifa_next
    }
    return interfaces
  }

  private static func ownName() -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { name in
      guard let start = name.baseAddress, gethostname(start, name.count) == 0 else { return "" }
      name[name.count - 1] = 0
      return String(cString: start)
    }
  }

  private static func text(of path: String) -> String {
    (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
  }
}

/// Reads names and proxies from the system's files and variables.
enum SystemFiles {
  /// Returns the addresses of `name` in lines of `/etc/hosts`.
  static func addresses(of name: String, inHosts text: String) -> [String] {
    lines(text).compactMap { words in
      guard words.count > 1, words.dropFirst().contains(where: { $0.lowercasedASCII == name })
      else {
        return nil
      }
      return String(words[0])
    }
  }

  /// Returns the addresses of `nameserver` lines.
  static func nameServers(_ text: String) -> [String] {
    lines(text).compactMap { words in
      words.count > 1 && words[0] == "nameserver" ? String(words[1]) : nil
    }
  }

  /// Returns the hosts of the given proxy, or of the environment's proxies.
  static func proxies(_ proxy: String?, environment: [String: String]) -> [String] {
    let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    let addresses = proxy.map { [$0] } ?? names.compactMap { environment[$0] }
    return addresses.compactMap { address in
      let start = address.firstRange(of: "://")?.upperBound ?? address.startIndex
      let authority = address[start...].until("/", "?", "#")
      let host = authority.words(at: "@").last ?? ""
      let name =
        host.rest(after: "[")?.until("]") ?? host.until(":")
      return name.isEmpty ? nil : String(name)
    }
  }

  /// Returns the words of each line, without comments.
  private static func lines(_ text: String) -> [[Substring]] {
    text.lines.map { $0.until("#").fields }
  }
}

#if SystemLibraries && !canImport(Darwin)
  import FerryPlatform

  /// The proxies that curl may use: a request may connect to them, whatever their addresses are.
  struct ProxyAddresses: Sendable, Equatable {
    private static let variables = [
      "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
    ]

    /// Hosts and ports, as they are written.
    let proxies: [(host: String, port: String)]

    static func == (left: ProxyAddresses, right: ProxyAddresses) -> Bool {
      left.proxies.elementsEqual(right.proxies) { $0 == $1 }
    }

    /// - Parameter configured: The proxy of the configuration; `nil` for the environment's.
    init(configured: String?, environment: [String: String]) {
      let urls = configured.map { [$0] } ?? Self.variables.compactMap { environment[$0] }
      proxies = urls.compactMap(Self.parts)
    }

    /// Returns true if a connection goes to a proxy. Blocks until the names of the proxies are
    /// resolved.
    func contain(_ address: NetworkAddress, port: UInt16) -> Bool {
      proxies.contains { proxy in
        proxy.port == "\(port)" && Self.addresses(of: proxy.host).contains(address)
      }
    }

    private static func parts(_ url: String) -> (host: String, port: String)? {
      var rest = Array(url.utf8)[...]
      for index in rest.indices.dropLast(2) where rest[index...].starts(with: "://".utf8) {
        rest = rest[(index + 3)...]
        break
      }
      rest = rest.prefix { $0 != UInt8(ascii: "/") }
      if let at = rest.lastIndex(of: UInt8(ascii: "@")) { rest = rest[(at + 1)...] }
      let colon = rest.lastIndex(of: UInt8(ascii: ":"))
      let hasPort = colon.map { !rest[$0...].contains(UInt8(ascii: "]")) } ?? false
      let host = hasPort ? rest[..<(colon ?? rest.endIndex)] : rest
      guard !host.isEmpty else { return nil }
      // Curl's port of a proxy without one.
      let port =
        hasPort ? String(decoding: rest[(colon ?? 0)...].dropFirst(), as: UTF8.self) : "1080"
      return (String(decoding: host, as: UTF8.self), port)
    }

    private static func addresses(of host: String) -> [NetworkAddress] {
      if let literal = NetworkAddress(literal: host) { return [literal] }
      var list: UnsafeMutablePointer<addrinfo>?
      guard getaddrinfo(host, nil, nil, &list) == 0 else { return [] }
      defer { freeaddrinfo(list) }
      var found: [NetworkAddress] = []
      var next = list
      while let info = next?.pointee {
        let bytes = UnsafeRawBufferPointer(start: info.ai_addr, count: Int(info.ai_addrlen))
        if let address = NetworkAddress(socket: bytes) { found.append(address) }
        next = info.ai_next
      }
      return found
    }
  }
#endif

#if SystemLibraries && !canImport(Darwin)
  /// Hosts without a proxy.
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
#endif

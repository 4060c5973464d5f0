import Glibc

/// An IPv4 or IPv6 address with a port.
struct SocketAddress {
  private(set) var storage = sockaddr_storage()
  private(set) var length: socklen_t

  /// Reads an address from text: `127.0.0.1`, `::1`, `[::1]` or `localhost`. `nil` if it is no
  /// address.
  init?(_ text: String, port: UInt16) {
    var host = text == "localhost" ? "127.0.0.1" : text
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    var version4 = sockaddr_in()
    var version6 = sockaddr_in6()
    if inet_pton(AF_INET, host, &version4.sin_addr) == 1 {
      version4.sin_family = sa_family_t(AF_INET)
      version4.sin_port = port.bigEndian
      length = socklen_t(MemoryLayout<sockaddr_in>.size)
      withUnsafeMutableBytes(of: &storage) { storage in
        withUnsafeBytes(of: version4) { storage.copyMemory(from: $0) }
      }
    } else if inet_pton(AF_INET6, host, &version6.sin6_addr) == 1 {
      version6.sin6_family = sa_family_t(AF_INET6)
      version6.sin6_port = port.bigEndian
      length = socklen_t(MemoryLayout<sockaddr_in6>.size)
      withUnsafeMutableBytes(of: &storage) { storage in
        withUnsafeBytes(of: version6) { storage.copyMemory(from: $0) }
      }
    } else {
      return nil
    }
  }

  /// Creates an address that a system call is to fill in.
  init() {
    length = socklen_t(MemoryLayout<sockaddr_storage>.size)
  }

  var isIPv6: Bool { storage.ss_family == sa_family_t(AF_INET6) }

  /// Lends the address to a system call.
  mutating func withPointer<T>(
    _ body: (UnsafeMutablePointer<sockaddr>, inout socklen_t) -> T
  ) -> T {
    var length = length
    defer { self.length = length }
    return withUnsafeMutablePointer(to: &storage) { storage in
      storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &length) }
    }
  }

  var port: UInt16 {
    withUnsafeBytes(of: storage) { storage in
      // The port is at the same place in both families.
      UInt16(bigEndian: storage.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
    }
  }

  /// The address at the other end.
  var client: ClientAddress {
    withUnsafeBytes(of: storage) { storage in
      // in_addr starts at byte 4 of sockaddr_in, in6_addr at byte 8 of sockaddr_in6.
      guard isIPv6 else {
        return ClientAddress(
          ipv4: UInt32(bigEndian: storage.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
      }
      return ClientAddress(
        ipv6Network: UInt64(
          bigEndian: storage.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
        interface: UInt64(
          bigEndian: storage.loadUnaligned(fromByteOffset: 16, as: UInt64.self)))
    }
  }

  /// Returns the numeric host of `address`, an IPv4-mapped one as IPv4; empty for another family.
  static func host(of address: UnsafePointer<sockaddr>?) -> String {
    guard let address else { return "" }
    let bytes = UnsafeRawPointer(address)
    let family = Int32(address.pointee.sa_family)
    guard family == AF_INET || family == AF_INET6 else { return "" }
    // in_addr starts at byte 4 of sockaddr_in, in6_addr at byte 8 of sockaddr_in6.
    let host = bytes + (family == AF_INET ? 4 : 8)
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
      guard let text = text.baseAddress,
        inet_ntop(family, host, text, socklen_t(INET6_ADDRSTRLEN)) != nil
      else { return "" }
      let name = String(cString: text)
      return name.hasPrefix("::ffff:") && name.contains(".") ? String(name.dropFirst(7)) : name
    }
  }
}

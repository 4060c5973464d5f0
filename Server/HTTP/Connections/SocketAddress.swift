import FerryPlatform
import Glibc

/// An IPv4 or IPv6 address with a port.
struct SocketAddress {
  private(set) var storage = sockaddr_storage()
  private(set) var length: socklen_t

  /// Reads an address from text: `127.0.0.1`, `::1`, `[::1]` or `localhost`. `nil` if it is no
  /// address.
  init?(_ text: String, port: UInt16) {
    var host = text == "localhost" ? "127.0.0.1" : text
    if let inner = host.rest(after: "[")?.start(before: "]") { host = String(inner) }
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

  /// Creates an address for a system call to fill in.
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

  /// The address without the port.
  var ip: IPAddress { withUnsafeBytes(of: storage) { Self.ip(isIPv6: isIPv6, $0) } }

  /// Returns the address of a socket without the port; `nil` for another family.
  static func ip(of address: UnsafePointer<sockaddr>?) -> IPAddress? {
    guard let address else { return nil }
    let family = Int32(address.pointee.sa_family)
    guard family == AF_INET || family == AF_INET6 else { return nil }
    let size =
      family == AF_INET6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
    return ip(
      isIPv6: family == AF_INET6, UnsafeRawBufferPointer(start: address, count: size))
  }

  private static func ip(isIPv6: Bool, _ bytes: UnsafeRawBufferPointer) -> IPAddress {
    // in_addr starts at byte 4 of sockaddr_in, in6_addr at byte 8 of sockaddr_in6.
    guard isIPv6 else {
      return IPAddress(
        ipv4: UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
    }
    return IPAddress(bytes: UnsafeRawBufferPointer(rebasing: bytes[8..<24]))
  }
}

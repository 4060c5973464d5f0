import Foundation
import Synchronization

/// Free TCP ports of 127.0.0.1.
package enum FreePort {
  /// Below the range from which the kernel takes the ports of outgoing connections, so none of
  /// those takes the port before its user does.
  private static let range: Range<UInt16> = 20_000..<32_000
  private static let handedOut = Mutex(Set<UInt16>())

  /// Returns a port not returned before by this process. Another process may still be faster.
  package static func next() throws -> UInt16 {
    for _ in range {
      let port = UInt16.random(in: range)
      guard handedOut.withLock({ $0.insert(port).inserted }) else { continue }
      if isFree(port) { return port }
    }
    throw TestSupportError(
      "no TCP port between \(range.lowerBound) and \(range.upperBound) is free")
  }

  /// Returns a port that refuses connections until this process ends: it is bound, so no other
  /// process gets it, and nobody listens.
  package static func refused() throws -> UInt16 { try LoopbackSocket.bind().port }

  private static func isFree(_ port: UInt16) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }
}

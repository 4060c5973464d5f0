import Foundation

/// The system's buffers of connections on 127.0.0.1: bytes sent by one process and not read by the
/// other.
struct SocketQueues {
  /// Bytes that have arrived and were not read, by the reader's port.
  private var arrived: [UInt16: Int] = [:]

  /// Looks at all connections to `port`, from the side of those that made them (proc_net_tcp.txt of
  /// the Linux kernel).
  init(ofPeersOn port: UInt16) {
    // Read to the end by pieces: as a whole file it would be cut off at the first.
    let file = FileHandle(forReadingAtPath: "/proc/net/tcp")
    let table = (try? file?.readToEnd()).map { String(decoding: $0, as: UTF8.self) } ?? ""
    for line in table.split(separator: "\n").dropFirst() {
      let fields = line.split(separator: " ", maxSplits: 5)
      guard fields.count > 4, Self.port(fields[2]) == port, let reader = Self.port(fields[1]),
        let bytes = fields[4].split(separator: ":").last.flatMap({ Int($0, radix: 16) })
      else { continue }
      arrived[reader] = bytes
    }
  }

  /// Returns bytes sent on a connection and not read by the other side.
  func unread(from descriptor: Int32) -> Int {
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isKnown = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getpeername(descriptor, $0, &size) == 0
      }
    }
    guard isKnown else { return 0 }
    return notSent(descriptor) + (arrived[UInt16(bigEndian: address.sin_port)] ?? 0)
  }

  private func notSent(_ descriptor: Int32) -> Int {
    #if os(Linux)
      // SIOCOUTQNSD (tcp(7) has its sibling SIOCOUTQ): bytes that have not left for the other side
      // yet.
      var count: Int32 = 0
      return ioctl(descriptor, 0x894B, &count) == 0 ? Int(count) : 0
    #else
      return 0
    #endif
  }

  /// Returns the port of an address such as `0100007F:1F90`.
  private static func port(_ address: Substring) -> UInt16? {
    address.split(separator: ":").last.flatMap { UInt16($0, radix: 16) }
  }
}

extension TCPProxy {
  /// Returns `readByteCount()` of stopped readers, once no bytes move towards them any more.
  package func readByteCountAtRest() async throws -> Int {
    var last = readByteCount()
    return try await eventually("the bytes on port \(port) to come to rest") {
      // Some time has to pass between two equal numbers.
      try await Task.sleep(for: .milliseconds(5))
      let (before, now) = (last, readByteCount())
      last = now
      return now == before ? now : nil
    }
  }
}

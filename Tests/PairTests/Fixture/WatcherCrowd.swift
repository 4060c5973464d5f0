import FerryTestSupport
import Foundation

/// Listeners to events on blocking sockets, each from a separate address. One thread uses them.
final class WatcherCrowd {
  private struct Watcher {
    let socket: Int32
    var received: [UInt8] = []
  }

  private let port: UInt16
  private let host: String
  private var watchers: [Watcher] = []

  init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  deinit { for watcher in watchers { close(watcher.socket) } }

  var count: Int { watchers.count }

  /// Opens one stream from each address, and waits until each has the first event. Opens some at a
  /// time, like devices one after another.
  func listen(from addresses: [(address: String, token: String)], to space: String) throws {
    for start in stride(from: 0, to: addresses.count, by: 100) {
      let first = watchers.count
      for (address, token) in addresses[start..<min(start + 100, addresses.count)] {
        let socket = try Self.connect(from: address, to: host, port)
        watchers.append(Watcher(socket: socket))
        try Self.send(socket, "GET", "/v1/spaces/\(space)/events", token: token)
      }
      for index in first..<watchers.count {
        try receive(index) {
          $0.starts(with: Array("HTTP/1.1 200".utf8)) && $0.contains("\"head\"")
        }
      }
    }
  }

  /// Waits until each listener has received a head.
  func wait(forHead head: Int) throws {
    for index in watchers.indices { try receive(index) { $0.contains("\"head\":\"\(head)\"") } }
  }

  private func receive(_ index: Int, until isEnough: ([UInt8]) -> Bool) throws {
    var piece = [UInt8](repeating: 0, count: 4_096)
    while !isEnough(watchers[index].received) {
      let count = recv(watchers[index].socket, &piece, piece.count, 0)
      guard count > 0 else {
        throw TestSupportError(
          "listener \(index) of \(watchers.count) received \(count), errno \(errno), after "
            + String(decoding: watchers[index].received.suffix(400), as: UTF8.self))
      }
      watchers[index].received += piece[..<count]
    }
    // Only the end of a long stream matters.
    watchers[index].received = Array(watchers[index].received.suffix(200))
  }

  // MARK: Single requests

  /// Connects from an address of this machine.
  static func connect(from address: String, to host: String, _ port: UInt16) throws -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var limit = timeval(tv_sec: Int(Duration.hangLimit.components.seconds), tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    func call(
      _ host: String, _ port: UInt16,
      _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
      var target = sockaddr_in()
      target.sin_family = sa_family_t(AF_INET)
      target.sin_port = port.bigEndian
      inet_pton(AF_INET, host, &target.sin_addr)
      return withUnsafePointer(to: &target) { target in
        target.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
    }
    guard call(address, 0, { bind(descriptor, $0, $1) }) == 0,
      call(host, port, { Glibc.connect(descriptor, $0, $1) }) == 0
    else {
      defer { close(descriptor) }
      throw TestSupportError(
        "cannot connect from \(address) to \(host):\(port): \(String(cString: strerror(errno)))")
    }
    return descriptor
  }

  static func send(
    _ socket: Int32, _ method: String, _ path: String, token: String? = nil,
    headers: [String: String] = [:], body: [UInt8] = []
  ) throws {
    var head = "\(method) \(path) HTTP/1.1\r\nHost: ferry\r\nContent-Length: \(body.count)\r\n"
    for (name, value) in headers { head += "\(name): \(value)\r\n" }
    if let token { head += "Authorization: Bearer \(token)\r\n" }
    if !body.isEmpty { head += "Content-Type: application/json\r\n" }
    let bytes = Array((head + "\r\n").utf8) + body
    guard Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
      throw TestSupportError("cannot send: \(String(cString: strerror(errno)))")
    }
  }

  /// Returns the status of the answer; `nil` if the connection ended without one.
  static func status(_ socket: Int32) -> Int? {
    var line = [UInt8](repeating: 0, count: 12)
    guard recv(socket, &line, 12, Int32(MSG_WAITALL)) == 12 else { return nil }
    return Int(String(decoding: line.suffix(3), as: UTF8.self))
  }
}

extension [UInt8] {
  fileprivate func contains(_ text: String) -> Bool {
    let text = Array(text.utf8)
    guard count >= text.count else { return false }
    return (0...(count - text.count)).contains { self[$0...].starts(with: text) }
  }
}

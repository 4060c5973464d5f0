import FerryLaboratory
import Foundation

/// A plain HTTP/1.1 client on one connection, for a live server's bytes on the wire.
package actor ServiceSocket {
  package struct Answer: Sendable {
    package var status: Int
    package var headers: [String: String]
    package var body: [UInt8]

    package var text: String { String(decoding: body, as: UTF8.self) }
  }

  private let connection: Connection

  package init(port: UInt16) throws { connection = try Connection(port: port) }

  /// Sends one request and reads to the end of the connection.
  package static func exchange(
    _ port: UInt16, _ method: String, _ target: String, headers: [String: String] = [:],
    body: [UInt8] = []
  ) async throws -> Answer {
    let socket = try ServiceSocket(port: port)
    try await socket.send(method, target, headers: headers, body: body)
    return try await socket.answer()
  }

  package func send(
    _ method: String, _ target: String, headers: [String: String] = [:], body: [UInt8] = []
  ) async throws {
    var head = "\(method) \(target) HTTP/1.1\r\n"
    var defaults = ["Host": "127.0.0.1", "Connection": "close"]
    if !body.isEmpty { defaults["Content-Type"] = "application/json" }
    for (name, value) in headers.merging(defaults, uniquingKeysWith: { mine, _ in mine }) {
      head += "\(name): \(value)\r\n"
    }
    if !body.isEmpty { head += "Content-Length: \(body.count)\r\n" }
    let connection = connection
    let bytes = Array((head + "\r\n").utf8) + body
    try await Self.blocking { try connection.send(bytes) }
  }

  /// Reads on until the received bytes contain `text`; returns all of them.
  package func read(until text: String) async throws -> String {
    let connection = connection
    return try await Self.blocking {
      while !connection.text.contains(text) {
        guard try connection.receive() else {
          throw TestSupportError("the connection ended without \(text): \(connection.text)")
        }
      }
      return connection.text
    }
  }

  /// Reads to the end of the connection; returns all received bytes.
  package func readToEnd() async throws -> String {
    let connection = connection
    return try await Self.blocking {
      while try connection.receive() {}
      return connection.text
    }
  }

  /// Returns the response to the one request, once the server has closed the connection.
  package func answer() async throws -> Answer {
    _ = try await readToEnd()
    return try Self.parse(connection.bytes)
  }

  private static func parse(_ bytes: [UInt8]) throws -> Answer {
    let separator = Array("\r\n\r\n".utf8)
    guard
      let end = bytes.indices.first(where: { bytes[$0...].starts(with: separator) })
    else { throw TestSupportError("no answer: \(String(decoding: bytes, as: UTF8.self))") }
    let lines = String(decoding: bytes[..<end], as: UTF8.self).components(separatedBy: "\r\n")
    guard let status = Int(lines[0].split(separator: " ").dropFirst().first ?? "") else {
      throw TestSupportError("no status: \(lines[0])")
    }
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
    }
    return Answer(status: status, headers: headers, body: Array(bytes[(end + 4)...]))
  }

  /// Runs blocking code on a separate thread.
  private static func blocking<T: Sendable>(
    _ body: @escaping @Sendable () throws -> T
  ) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
    }
  }

  /// The socket and the received bytes. Used by one blocking call at a time.
  private final class Connection: @unchecked Sendable {
    // SAFETY: the actor awaits each blocking call before it makes the next.
    private let descriptor: Int32
    private(set) var bytes: [UInt8] = []

    init(port: UInt16) throws {
      // A child process that inherits the descriptor would keep the connection open.
      let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
      descriptor = socket(AF_INET, kind, 0)
      // A hung server fails a test instead of stopping it.
      var wait = timeval(tv_sec: 600, tv_usec: 0)
      setsockopt(
        descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = inet_addr("127.0.0.1")
      let status = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      guard status == 0 else { throw TestSupportError("cannot connect to port \(port)") }
    }

    deinit { close(descriptor) }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    func send(_ message: [UInt8]) throws {
      var rest = message[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes {
          Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        // A server may respond and close before it has read everything.
        if count < 0, errno == EPIPE || errno == ECONNRESET { return }
        guard count > 0 else { throw TestSupportError("cannot send") }
        rest = rest.dropFirst(count)
      }
    }

    /// Waits for more; `false` at the end.
    func receive() throws -> Bool {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count < 0, errno == ECONNRESET { return false }
      guard count >= 0 else { throw TestSupportError("nothing came") }
      bytes += buffer.prefix(count)
      return count > 0
    }
  }
}

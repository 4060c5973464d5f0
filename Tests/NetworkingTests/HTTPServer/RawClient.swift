import FerryTestSupport
import Foundation
import Glibc

/// Why the client gave up.
enum RawClientError: Error, Equatable {
  case notConnected(Int32)
  case closed
  case reset
  /// The server neither sent nor closed for a long time.
  case silent
  case malformed(String)
}

/// A blocking HTTP/1.1 client that shows the bytes on the wire. Use it inside `onThread`.
final class RawClient {
  struct Response: Equatable {
    var status: Int
    var headers: [String: String]
    var body: [UInt8] = []

    var text: String { String(decoding: body, as: UTF8.self) }
  }

  let socket: Int32
  private var buffer: [UInt8] = []

  init(port: UInt16, receiveBuffer: Int32? = nil) throws {
    // A write to a closed connection is an error here, not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    socket = Glibc.socket(
      AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if var size = receiveBuffer {
      setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, 4)
    }
    // A hung server fails a test instead of stopping it.
    var timeout = timeval(tv_sec: Int(Duration.hangLimit.components.seconds), tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    // deinit closes the socket.
    guard status == 0 else { throw RawClientError.notConnected(errno) }
  }

  deinit { Glibc.close(socket) }

  func send(_ text: String) throws { try send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes { rest in
        Glibc.send(socket, rest.baseAddress, rest.count, 0)
      }
      guard count > 0 else { throw RawClientError.closed }
      sent += count
    }
  }

  /// Sends a request and reads the response.
  func exchange(
    _ method: String, _ target: String, headers: [String: String] = [:], body: [UInt8]? = nil
  ) throws -> Response {
    try send(Self.message(method, target, headers: headers, body: body))
    return try response(hasBody: method != "HEAD")
  }

  static func message(
    _ method: String, _ target: String, headers: [String: String] = [:], body: [UInt8]? = nil
  ) -> [UInt8] {
    var head = "\(method) \(target) HTTP/1.1\r\nHost: test\r\n"
    for (name, value) in headers.sorted(by: <) { head += "\(name): \(value)\r\n" }
    if let body { head += "Content-Length: \(body.count)\r\n" }
    return Array((head + "\r\n").utf8) + (body ?? [])
  }

  func response(hasBody: Bool = true) throws -> Response {
    var response = try head()
    guard hasBody, response.status != 204, response.status != 304 else { return response }
    if let length = response.headers["content-length"].flatMap({ Int($0) }) {
      response.body = try take(length)
    } else if response.headers["transfer-encoding"] == "chunked" {
      while let chunk = try chunk() { response.body += chunk }
    }
    return response
  }

  /// Status and headers only; header names in lower case, repeated ones joined.
  func head() throws -> Response {
    let status = try line().split(separator: " ")
    guard status.count >= 2, status[0] == "HTTP/1.1", let code = Int(status[1]) else {
      throw RawClientError.malformed("\(status)")
    }
    var response = Response(status: code, headers: [:])
    while case let line = try line(), !line.isEmpty {
      let parts = line.split(separator: ":", maxSplits: 1)
      let name = parts[0].lowercased()
      let value = parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
      response.headers[name] = response.headers[name].map { $0 + ", " + value } ?? value
    }
    return response
  }

  /// Returns the next chunk of a chunked body, nil at the end.
  func chunk() throws -> [UInt8]? {
    let text = try line()
    guard let size = Int(text, radix: 16) else { throw RawClientError.malformed(text) }
    let chunk = try take(size)
    _ = try line()
    return size == 0 ? nil : chunk
  }

  /// Reads content and throws it away.
  func skip(_ count: Int) throws {
    var rest = count - min(count, buffer.count)
    buffer.removeFirst(count - rest)
    var piece = [UInt8](repeating: 0, count: 1 << 20)
    while rest > 0 {
      let received = recv(socket, &piece, min(rest, piece.count), 0)
      guard received > 0 else { throw Self.failure(received) }
      rest -= received
    }
  }

  /// Returns whether the server closes, with no more bytes to read.
  func isClosedByPeer() throws -> Bool {
    do {
      try fill()
      return false
    } catch RawClientError.closed {
      return true
    }
  }

  /// Returns whether the server cuts the connection off, with no more bytes to read.
  func isCutOff() throws -> Bool {
    do {
      return try isClosedByPeer()
    } catch RawClientError.reset {
      return true
    }
  }

  /// Sends bytes and then no more, and returns the statuses of all responses until the server
  /// closes. Interim responses are left out.
  func everything(after bytes: [UInt8]) throws -> [Int] {
    // The server may have responded and closed before it has all of it.
    try? send(bytes)
    shutdown(socket, Int32(SHUT_WR))
    while (try? fill()) != nil {}
    let heads = String(decoding: buffer, as: UTF8.self).components(separatedBy: "HTTP/1.1 ")
    return heads.dropFirst().compactMap { Int($0.prefix(3)) }.filter { $0 != 100 }
  }

  private func line() throws -> String {
    while true {
      if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: buffer[..<end], as: UTF8.self)
        buffer.removeFirst(end + 1)
        return line.hasSuffix("\r") ? String(line.dropLast()) : line
      }
      try fill()
    }
  }

  private func take(_ count: Int) throws -> [UInt8] {
    while buffer.count < count { try fill() }
    defer { buffer.removeFirst(count) }
    return Array(buffer.prefix(count))
  }

  private func fill() throws {
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    let count = recv(socket, &piece, piece.count, 0)
    guard count > 0 else { throw Self.failure(count) }
    buffer += piece[..<count]
  }

  /// Returns the meaning of a result of recv(2) other than a number of bytes.
  private static func failure(_ result: Int) -> RawClientError {
    if result == 0 { return .closed }
    return errno == EAGAIN ? .silent : .reset
  }
}

/// Runs blocking work on a separate thread, for the cooperative pool must stay free.
func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
  }
}

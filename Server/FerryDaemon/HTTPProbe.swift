import FerryCommandLine
import FerryPlatform
import Foundation

/// One GET over a plain socket; only the status of the answer counts.
struct HTTPProbe: Sendable, CustomStringConvertible {
  let description: String
  private let host: String
  private let port: String
  private let target: String

  /// Reads a URL; `nil` for anything but a http URL.
  init?(_ text: String) {
    guard let parts = URLComponents(string: text), parts.scheme == "http",
      let host = parts.host, !host.isEmpty
    else { return nil }
    description = text
    self.host = host.rest(after: "[")?.start(before: "]").map(String.init) ?? host
    port = String(parts.port ?? 80)
    target =
      (parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath)
      + (parts.percentEncodedQuery.map { "?" + $0 } ?? "")
  }

  /// Returns the status of the answer. Blocks.
  func status(within limit: Duration) throws -> Int {
    let descriptor = try connected(within: limit)
    defer { close(descriptor) }
    let authority = host.has(":") ? "[\(host)]" : host
    let request = Array(
      """
      GET \(target) HTTP/1.1\r
      Host: \(authority):\(port)\r
      User-Agent: ferryd-healthcheck\r
      Connection: close\r
      \r

      """.utf8)
    guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count
    else { throw failure(errno) }
    return try readStatus(descriptor)
  }

  private func connected(within limit: Duration) throws -> Int32 {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, port, &hints, &found)
    guard code == 0 else { throw failure(String(cString: gai_strerror(code))) }
    defer { freeaddrinfo(found) }
    var reason: Int32 = EADDRNOTAVAIL
    var next = found
    while let address = next?.pointee {
      let descriptor = socket(address.ai_family, address.ai_socktype, address.ai_protocol)
      var wait = limit.timeValue
      // On Linux the limit for sending holds for connecting as well.
      for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
        setsockopt(descriptor, SOL_SOCKET, option, &wait, socklen_t(MemoryLayout<timeval>.size))
      }
      if connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 { return descriptor }
      reason = errno
      close(descriptor)
      next = address.ai_next
    }
    throw failure(reason)
  }

  /// Reads `HTTP/1.1 200` and no further.
  private func readStatus(_ descriptor: Int32) throws -> Int {
    var line: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 12)
    while line.count < 12 {
      let count = recv(descriptor, &buffer, 12 - line.count, 0)
      guard count > 0 else { throw failure(count == 0 ? ECONNRESET : errno) }
      line += buffer.prefix(count)
    }
    let text = String(decoding: line, as: UTF8.self)
    guard text.begins(with: "HTTP/1."), let status = Int(Substring(text.utf8.suffix(3))) else {
      throw failure("the answer is not HTTP")
    }
    return status
  }

  private func failure(_ code: Int32) -> CommandFailure {
    failure(code == EAGAIN ? "no answer in time" : String(cString: strerror(code)))
  }

  private func failure(_ reason: String) -> CommandFailure {
    CommandFailure(
      "the server does not answer", why: "\(description): \(reason)",
      next: "check that ferryd runs, and check its address", code: "no_answer")
  }
}

extension Duration {
  /// At least a millisecond: zero would mean to wait for ever.
  fileprivate var timeValue: timeval {
    let (seconds, attoseconds) = max(self, .milliseconds(1)).components
    return timeval(
      tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
  }
}

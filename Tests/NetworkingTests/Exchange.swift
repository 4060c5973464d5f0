import Foundation

/// One request as the server read it, and the means to respond in any way.
struct Exchange {
  let method: String
  let path: String
  let headers: [String: String]
  let body: [UInt8]
  private let connection: Int32

  /// Reads one request; nil when the peer has gone.
  ///
  /// - Parameter beforeBody: runs when the head was read, and none of the body.
  init?(reading connection: Int32, beforeBody: () -> Void = {}) {
    self.connection = connection
    var head: [UInt8] = []
    var byte: UInt8 = 0
    while !head.suffix(4).elementsEqual(Array("\r\n\r\n".utf8)) {
      guard recv(connection, &byte, 1, 0) == 1 else { return nil }
      head.append(byte)
    }
    let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
    let words = lines[0].split(separator: " ")
    guard words.count == 3 else { return nil }
    (method, path) = (String(words[0]), String(words[1]))
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      headers[line[..<colon].lowercased()] =
        line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }
    self.headers = headers
    beforeBody()
    var body = [UInt8](repeating: 0, count: headers["content-length"].flatMap { Int($0) } ?? 0)
    var count = 0
    while count < body.count {
      let got = body.withUnsafeMutableBytes { bytes in
        let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[count...])
        return recv(connection, rest.baseAddress, rest.count, 0)
      }
      guard got > 0 else { return nil }
      count += got
    }
    self.body = body
  }

  /// Sends bytes as they are; returns whether the peer still takes them.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  @discardableResult
  func send(_ text: String) -> Bool { send(Array(text.utf8)) }

  /// Sends a whole response with the length.
  func answer(_ status: String, _ fields: [String] = [], _ body: [UInt8] = []) -> Bool {
    let head = ["HTTP/1.1 \(status)", "Content-Length: \(body.count)"] + fields
    return send(Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)
  }

  /// Sends one chunk of a chunked body.
  @discardableResult
  func chunk(_ text: String) -> Bool {
    send(String(text.utf8.count, radix: 16) + "\r\n" + text + "\r\n")
  }

  /// Waits until the peer has closed the connection on that side.
  func waitForLeave() {
    var byte: UInt8 = 0
    while recv(connection, &byte, 1, 0) > 0 {}
  }

  /// Makes closing the connection a reset instead of an orderly end.
  func resetOnClose() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(
      connection, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }
}

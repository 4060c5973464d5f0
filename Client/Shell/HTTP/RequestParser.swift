/// Reads requests from the bytes of a connection; pure (RFC 9112, a strict part of it).
///
/// It accepts `HTTP/1.1` with CRLF, the methods GET, HEAD and POST, and bodies with a declared
/// length. It refuses all else, since only browsers of this machine are to be served.
struct RequestParser: Sendable {
  enum Event: Sendable, Equatable {
    /// More bytes are necessary.
    case more
    /// A head is complete. The caller calls ``readBody()`` or closes the connection.
    case head(RequestHead)
    /// The body of the last head is complete.
    case body([UInt8])
    /// The bytes are no request. Answer with this status, and close the connection.
    case fault(status: Int)
  }

  /// The most bytes of a head.
  static let headBytesMax = 16 << 10
  /// The most fields of a head.
  static let fieldsMax = 64
  /// The most bytes of a target.
  static let targetBytesMax = 2 << 10
  /// The most bytes of any body; routes have lower limits.
  static let bodyBytesMax = 16 << 20

  private enum State: Equatable {
    case head
    case decision
    case body(Int)
    case broken
  }

  private var state = State.head
  private var buffer: [UInt8] = []
  private var declared = 0
  /// The bytes of the head already searched.
  private var searched = 0

  /// True if no byte of a further request has arrived.
  var isBetweenRequests: Bool { state == .head && buffer.isEmpty }

  /// Adds bytes of the connection.
  mutating func feed(_ bytes: some Collection<UInt8>) { buffer += bytes }

  /// Begins to read the body of the last head.
  mutating func readBody() {
    precondition(state == .decision, "a body follows a head")
    state = .body(declared)
  }

  /// Returns the next event.
  mutating func next() -> Event {
    switch state {
    case .head: return head()
    case .decision: return .more
    case .broken: return .fault(status: 400)
    case .body(let count):
      guard buffer.count >= count else { return .more }
      let body = Array(buffer[..<count])
      buffer.removeFirst(count)
      state = .head
      return .body(body)
    }
  }

  private mutating func head() -> Event {
    guard let end = headEnd() else {
      return buffer.count > Self.headBytesMax ? broken(431) : .more
    }
    guard end <= Self.headBytesMax else { return broken(431) }
    let lines = Self.lines(buffer[..<(end - 2)])
    buffer.removeFirst(end)
    searched = 0
    do throws(HeadFault) {
      let head = try Self.parse(lines)
      declared = head.contentLength
      state = .decision
      return .head(head)
    } catch {
      return broken(error.status)
    }
  }

  private mutating func broken(_ status: Int) -> Event {
    state = .broken
    return .fault(status: status)
  }

  /// Returns the length of the head with the empty line; `nil` if the empty line has not arrived.
  private mutating func headEnd() -> Int? {
    var index = max(0, searched - 3)
    while index + 4 <= buffer.count {
      if buffer[index] == 0x0D, buffer[index + 1] == 0x0A, buffer[index + 2] == 0x0D,
        buffer[index + 3] == 0x0A
      {
        return index + 4
      }
      index += 1
    }
    searched = buffer.count
    return nil
  }

  private static func lines(_ bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    var lines: [ArraySlice<UInt8>] = []
    var start = bytes.startIndex
    var index = start
    while index + 1 < bytes.endIndex {
      if bytes[index] == 0x0D, bytes[index + 1] == 0x0A {
        lines.append(bytes[start..<index])
        start = index + 2
        index = start
      } else {
        index += 1
      }
    }
    if start < bytes.endIndex { lines.append(bytes[start...]) }
    return lines
  }

  private struct HeadFault: Error { let status: Int }

  private static func parse(
    _ lines: [ArraySlice<UInt8>]
  ) throws(HeadFault) -> RequestHead {
    guard let first = lines.first, lines.count - 1 <= fieldsMax else {
      throw HeadFault(status: 431)
    }
    var head = try requestLine(first)
    for line in lines.dropFirst() { head.fields.append(try field(line)) }
    guard !head.has("transfer-encoding") else { throw HeadFault(status: 501) }
    guard !head.has("expect"), !head.has("upgrade") else { throw HeadFault(status: 417) }
    if head.has("content-length") {
      guard let text = head["content-length"], 1...9 ~= text.utf8.count,
        text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }), let length = Int(text)
      else { throw HeadFault(status: 400) }
      guard length <= bodyBytesMax else { throw HeadFault(status: 413) }
      head.contentLength = length
    } else if head.method == .post {
      throw HeadFault(status: 411)
    }
    guard head.method == .post || head.contentLength == 0 else { throw HeadFault(status: 400) }
    return head
  }

  private static func requestLine(_ line: ArraySlice<UInt8>) throws(HeadFault) -> RequestHead {
    let parts = line.split(separator: 0x20, omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw HeadFault(status: 400) }
    guard parts[2].elementsEqual("HTTP/1.1".utf8) else { throw HeadFault(status: 505) }
    guard let method = RequestHead.Method(rawValue: String(decoding: parts[0], as: UTF8.self))
    else {
      throw HeadFault(status: 405)
    }
    guard parts[1].count <= targetBytesMax else { throw HeadFault(status: 414) }
    // Visible ASCII; a query or a fragment is never part of an address of the shell.
    guard parts[1].first == UInt8(ascii: "/"),
      parts[1].allSatisfy({
        0x21...0x7E ~= $0 && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
      })
    else { throw HeadFault(status: 400) }
    return RequestHead(method: method, target: String(decoding: parts[1], as: UTF8.self))
  }

  private static func field(_ line: ArraySlice<UInt8>) throws(HeadFault) -> RequestHead.Field {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else {
      throw HeadFault(status: 400)
    }
    let name = line[..<colon]
    guard name.allSatisfy(isToken) else { throw HeadFault(status: 400) }
    var value = line[(colon + 1)...]
    while let first = value.first, first == 0x20 || first == 0x09 { value = value.dropFirst() }
    while let last = value.last, last == 0x20 || last == 0x09 { value = value.dropLast() }
    guard value.allSatisfy({ $0 == 0x09 || 0x20...0x7E ~= $0 || $0 >= 0x80 }) else {
      throw HeadFault(status: 400)
    }
    return RequestHead.Field(
      name: String(decoding: name.map { 0x41...0x5A ~= $0 ? $0 + 0x20 : $0 }, as: UTF8.self),
      value: String(decoding: value, as: UTF8.self))
  }

  /// Returns true if a byte may be in a field's name (RFC 9110 §5.6.2).
  private static func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}

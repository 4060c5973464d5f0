import FerryTestSupport
import Foundation
import Synchronization

/// A small HTTP server over sockets that responds by a script, correctly or not: a thread for each
/// connection. It counts the bytes of bodies sent.
final class HostileServer: Sendable {
  /// One request.
  struct Request: Sendable {
    var path: String
    /// By lower-case names.
    var fields: [String: String]
    /// How many requests came before.
    var number: Int

    /// Returns the range asked for of a file with `size` bytes.
    func range(of size: Int) -> Range<Int>? {
      guard let field = fields["range"], field.hasPrefix("bytes=") else { return nil }
      let ends = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
      guard ends.count == 2, let first = Int(ends[0]), first < size else { return nil }
      return first..<min((Int(ends[1]) ?? size - 1) + 1, size)
    }
  }

  /// One response.
  struct Answer: Sendable {
    var status = "200 OK"
    var fields: [String] = []
    var body: [UInt8] = []
    /// The value of `Content-Length`; `nil` sends the body in chunks.
    var length: Int?
    /// Bytes of the body after which the server does `ending`.
    var cut: Int?
    var ending = Ending.close

    enum Ending: Sendable {
      /// The connection is closed.
      case close
      /// Nothing more comes, until the client leaves.
      case silence
    }

    init(
      _ status: String = "200 OK", _ fields: [String] = [], _ body: [UInt8] = [],
      length: Int? = nil
    ) {
      (self.status, self.fields, self.body) = (status, fields, body)
      self.length = length ?? body.count
    }

    /// Returns a good server's response: ranges and `If-Range` observed.
    static func good(_ content: [UInt8], tag: String?, to request: Request) -> Answer {
      let tags = tag.map { ["ETag: \($0)"] } ?? []
      let isCurrent = request.fields["if-range"].map { $0 == tag } ?? true
      guard isCurrent, let range = request.range(of: content.count) else {
        return Answer("200 OK", tags, content)
      }
      let place = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.count)"
      return Answer(
        "206 Partial Content", tags + ["Content-Range: \(place)"], Array(content[range]))
    }

    /// Returns the same response with the body broken off.
    func cut(after count: Int, _ ending: Ending = .close) -> Answer {
      var answer = self
      answer.cut = min(count, body.count)
      answer.ending = ending
      return answer
    }
  }

  private struct State {
    var requests: [Request] = []
    /// Bytes of bodies, including the ones under way.
    var served = 0
    var written = 0
    var open: Set<Int32> = []
    var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  let port: UInt16
  private let listener: Int32
  private let state = Mutex(State())
  private let respond: @Sendable (Request) -> Answer

  init(_ respond: @escaping @Sendable (Request) -> Answer) throws {
    self.respond = respond
    (listener, port) = try LoopbackSocket.listen()
    let thread = Thread { [listener, weak self] in
      while let connection = LoopbackSocket.accept(on: listener) {
        guard let self else {
          close(connection)
          return
        }
        self.serve(connection)
      }
    }
    thread.start()
  }

  /// Ends every connection and takes no more.
  func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    state.withLock { for connection in $0.open { shutdown(connection, Int32(SHUT_RDWR)) } }
  }

  deinit { close(listener) }

  var url: String { "http://127.0.0.1:\(port)/file" }
  var requests: [Request] { state.withLock { $0.requests } }
  /// Bytes of bodies sent.
  var served: Int { state.withLock { $0.served } }

  /// Waits until so many bytes of bodies went out.
  func hasServed(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isPast = state.withLock { state in
        if state.written < count { state.waiters.append((count, continuation)) }
        return state.written >= count
      }
      if isPast { continuation.resume() }
    }
  }

  private func serve(_ connection: Int32) {
    state.withLock { _ = $0.open.insert(connection) }
    let thread = Thread { [self] in
      while let request = read(connection), answer(request, connection) {}
      state.withLock { state in
        state.open.remove(connection)
        close(connection)
      }
    }
    thread.stackSize = 256 << 10
    thread.start()
  }

  private func read(_ connection: Int32) -> Request? {
    var head: [UInt8] = []
    var byte: [UInt8] = [0]
    while !head.suffix(4).elementsEqual(Array("\r\n\r\n".utf8)) {
      let read = LoopbackSocket.read(connection, &byte)
      guard !read.isEmpty else { return nil }
      head += read
    }
    let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
    let words = lines[0].split(separator: " ")
    guard words.count == 3 else { return nil }
    var request = Request(path: String(words[1]), fields: [:], number: 0)
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      request.fields[line[..<colon].lowercased()] =
        line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }
    state.withLock { state in
      request.number = state.requests.count
      state.requests.append(request)
    }
    return request
  }

  /// Responds, and returns whether the connection is good for another request.
  private func answer(_ request: Request, _ connection: Int32) -> Bool {
    let answer = respond(request)
    let framing = answer.length.map { "Content-Length: \($0)" } ?? "Transfer-Encoding: chunked"
    let head = ["HTTP/1.1 \(answer.status)", framing] + answer.fields
    let text = head.joined(separator: "\r\n") + "\r\n\r\n"
    guard LoopbackSocket.write(connection, Array(text.utf8)[...]) else { return false }
    let body = answer.cut.map { answer.body[..<$0] } ?? answer.body[...]
    guard send(body, connection, inChunks: answer.length == nil) else { return false }
    let isChunkedWhole = answer.length == nil && answer.cut == nil
    if isChunkedWhole, !LoopbackSocket.write(connection, Array("0\r\n\r\n".utf8)[...]) {
      return false
    }
    if answer.cut == nil, answer.length ?? body.count == body.count { return true }
    if answer.ending == .silence {
      var byte: [UInt8] = [0]
      while !LoopbackSocket.read(connection, &byte).isEmpty {}
    }
    return false
  }

  private func send(_ body: ArraySlice<UInt8>, _ connection: Int32, inChunks: Bool) -> Bool {
    var rest = body
    while !rest.isEmpty {
      let part = rest.prefix(16 << 10)
      rest = rest.dropFirst(part.count)
      let framed =
        inChunks
        ? Array("\(String(part.count, radix: 16))\r\n".utf8) + part + Array("\r\n".utf8)
        : Array(part)
      // A client may have ended before this thread goes on after the write.
      state.withLock { $0.served += part.count }
      guard LoopbackSocket.write(connection, framed[...]) else {
        state.withLock { $0.served -= part.count }
        return false
      }
      wakeWaiters(part.count)
    }
    return true
  }

  private func wakeWaiters(_ bytes: Int) {
    let ready = state.withLock { state in
      state.written += bytes
      let written = state.written
      defer { state.waiters.removeAll { $0.count <= written } }
      return state.waiters.filter { $0.count <= written }
    }
    for waiter in ready { waiter.continuation.resume() }
  }
}

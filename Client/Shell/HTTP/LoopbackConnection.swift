import FerryPlatform
import Foundation
import Synchronization

/// One connection of the shell's server; calls block a dedicated thread.
final class LoopbackConnection: Sendable {
  private let socket: Int32
  private let handler: any LoopbackHandler
  private let limits: LoopbackServer.Limits
  private let pipe: WakePipe
  private let admitted = Atomic(false)
  private let isCut = Atomic(false)
  private let isClosed = Atomic(false)

  /// The bytes of content per read.
  private static let blockBytes: Int64 = 256 << 10

  /// Creates a connection; `nil` if the process has no free descriptors.
  init?(_ socket: Int32, _ handler: any LoopbackHandler, _ limits: LoopbackServer.Limits) {
    guard let pipe = WakePipe() else { return nil }
    (self.socket, self.handler, self.limits, self.pipe) = (socket, handler, limits, pipe)
  }

  /// True if the connection has carried a request with the page's secrets.
  var isAdmitted: Bool { admitted.load(ordering: .relaxed) }

  /// Ends the connection from another thread.
  func cut() {
    isCut.store(true, ordering: .relaxed)
    pipe.wake()
  }

  /// Closes the descriptor, after ``run()``.
  func close() {
    guard !isClosed.exchange(true, ordering: .relaxed) else { return }
    Platform.closeDescriptor(socket)
  }

  /// Serves requests until the connection ends.
  func run() {
    var parser = RequestParser()
    while !isCut.load(ordering: .relaxed) {
      guard let head = readHead(&parser) else { return }
      switch handler.admit(head) {
      case .refused(let status):
        _ = send(.empty(status), to: head, closes: true)
        return linger()
      case .accepted: admitted.store(true, ordering: .relaxed)
      }
      parser.readBody()
      guard let body = readBody(&parser) else { return }
      guard let response = answer(head, body) else { return }
      let closes = !response.keepsConnection || head["connection"]?.lowercasedASCII == "close"
      guard send(response, to: head, closes: closes), !closes else { return }
    }
  }

  // MARK: Reading

  private func readHead(_ parser: inout RequestParser) -> RequestHead? {
    let silence = isAdmitted ? limits.idleTime : limits.headTime
    var deadline = ContinuousClock.now + silence
    var hasBegun = !parser.isBetweenRequests
    if hasBegun { deadline = .now + limits.headTime }
    while true {
      switch parser.next() {
      case .head(let head): return head
      case .fault(let status):
        _ = write(ShellResponse.empty(status).head(closes: true))
        linger()
        return nil
      case .body: return nil
      case .more: break
      }
      guard let bytes = read(until: deadline) else { return nil }
      parser.feed(bytes)
      if !hasBegun {
        hasBegun = true
        deadline = .now + limits.headTime
      }
    }
  }

  private func readBody(_ parser: inout RequestParser) -> [UInt8]? {
    let deadline = ContinuousClock.now + limits.bodyTime
    while true {
      switch parser.next() {
      case .body(let body): return body
      case .more: break
      case .head, .fault: return nil
      }
      guard let bytes = read(until: deadline) else { return nil }
      parser.feed(bytes)
    }
  }

  /// Returns the next bytes; `nil` at the end of the connection or at the deadline.
  private func read(until deadline: ContinuousClock.Instant) -> ArraySlice<UInt8>? {
    while !isCut.load(ordering: .relaxed) {
      let left = deadline - .now
      guard left > .zero else { return nil }
      let milliseconds = Int32(min(left / .milliseconds(1), 60_000)) + 1
      switch pipe.wait(beside: socket, reads: true, limit: milliseconds) {
      case .woken, .timeout: continue
      case .gone: return nil
      case .readable:
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(socket, &bytes, bytes.count, 0)
        if count < 0, errno == EINTR { continue }
        return count > 0 ? bytes[..<count] : nil
      }
    }
    return nil
  }

  /// Reads the rest from the other side, for a moment, so the other side gets the answer and no
  /// reset.
  private func linger() {
    shutdown(socket, Int32(SHUT_WR))
    let deadline = ContinuousClock.now + .seconds(1)
    var rest = 1 << 20
    while rest > 0, let bytes = read(until: deadline) { rest -= bytes.count }
  }

  // MARK: Answering

  /// Waits for the handler's answer. Cancels the handler's task if the other side ends the
  /// connection.
  private func answer(_ head: RequestHead, _ body: [UInt8]) -> ShellResponse? {
    let box = SharedBox<ShellResponse?>(nil)
    let task = Task { [handler, pipe] in
      let response = await handler.respond(to: head, body)
      // Nobody will send the lines.
      if Task.isCancelled, case .lines(let channel) = response.body { handler.ended(channel) }
      box.value.withLock { $0 = response }
      pipe.wake()
    }
    var reads = true
    while true {
      if let response = box.value.withLock({ $0 }) { return response }
      let signal = pipe.wait(beside: socket, reads: reads, limit: 60_000)
      if isCut.load(ordering: .relaxed) || signal == .gone || (signal == .readable && isAtEnd()) {
        task.cancel()
        return nil
      }
      // A further request waits for its turn.
      if signal == .readable { reads = false }
    }
  }

  private func isAtEnd() -> Bool {
    var byte: UInt8 = 0
    return recv(socket, &byte, 1, Int32(MSG_PEEK)) <= 0
  }

  private func send(_ response: ShellResponse, to head: RequestHead, closes: Bool) -> Bool {
    guard write(response.head(closes: closes)) else {
      if case .lines(let channel) = response.body { handler.ended(channel) }
      return false
    }
    if head.method == .head { return true }
    switch response.body {
    case .bytes(let bytes): return bytes.isEmpty || write(bytes)
    case .content(let content, let range): return send(content, range)
    case .lines(let channel):
      defer { handler.ended(channel) }
      return send(channel)
    }
  }

  private func send(_ content: ServedContent, _ range: Range<Int64>) -> Bool {
    var offset = range.lowerBound
    while offset < range.upperBound {
      let count = Int(min(range.upperBound - offset, Self.blockBytes))
      let box = SharedBox<[UInt8]?>(nil)
      let done = DispatchSemaphore(value: 0)
      let start = offset
      Task {
        let bytes = try? await content.read(from: start, count: count)
        box.value.withLock { $0 = bytes }
        done.signal()
      }
      done.wait()
      // Damaged content breaks the answer off: the length is declared already.
      guard let bytes = box.value.withLock({ $0 }), !bytes.isEmpty, bytes.count <= count,
        write(bytes)
      else { return false }
      offset += Int64(bytes.count)
    }
    return true
  }

  private func send(_ channel: LineChannel) -> Bool {
    channel.onChange { [pipe] in pipe.wake() }
    let beat = Int32(limits.beatTime / .milliseconds(1))
    while !isCut.load(ordering: .relaxed) {
      let (lines, isOver) = channel.drain()
      for line in lines where !chunk(line + [0x0A]) { return false }
      if isOver { return write(Array("0\r\n\r\n".utf8)) }
      if !lines.isEmpty { continue }
      switch pipe.wait(beside: socket, reads: true, limit: beat) {
      case .woken: continue
      case .timeout: guard chunk([0x0A]) else { return false }
      // The page sends nothing more on this connection.
      case .readable, .gone: return false
      }
    }
    return false
  }

  private func chunk(_ bytes: [UInt8]) -> Bool {
    write(Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + [0x0D, 0x0A])
  }

  private func write(_ bytes: [UInt8]) -> Bool { ShellSocket.send(bytes, to: socket) }
}

/// A mutex, shared by a task and a thread.
private final class SharedBox<Value: Sendable>: Sendable {
  let value: Mutex<Value>

  init(_ value: Value) { self.value = Mutex(value) }
}

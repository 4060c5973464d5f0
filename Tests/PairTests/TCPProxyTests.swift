import FerryTestSupport
import Foundation
import Testing

/// The proxy itself, on which the other suites rely.
@Suite(.hangLimit)
struct TCPProxyTests {
  private static let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"

  private let server: CannedServer
  private let proxy: TCPProxy

  init() throws {
    server = try CannedServer(saying: Self.answer)
    proxy = try TCPProxy(to: server.port)
  }

  /// Sends a request and reads to the end, on a separate thread.
  private func ask(_ path: String = "/a") async throws -> String {
    let port = proxy.port
    return try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(with: Result { try Self.ask(path, at: port) })
      }
    }
  }

  private static func ask(_ path: String, at port: UInt16) throws -> String {
    let socket = try LoopbackSocket.connect(to: port)
    defer { close(socket) }
    _ = LoopbackSocket.write(socket, ArraySlice("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
    var (text, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1_000))
    while true {
      let bytes = LoopbackSocket.read(socket, &buffer)
      if bytes.isEmpty { return String(decoding: text, as: UTF8.self) }
      text += bytes
    }
  }

  @Test("bytes pass unchanged and are counted")
  func passes() async throws {
    #expect(try await ask() == Self.answer)
    // Each direction has a thread, which counts bytes after it has passed them on.
    let request = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
    try await eventually("the proxy to count") {
      proxy.byteCount(.answer) == Self.answer.utf8.count
        && proxy.byteCount(.request) == request.utf8.count
    }
  }

  @Test("bytes in the system's buffer do not count as read")
  func unread() async throws {
    let large = try CannedServer(saying: String(repeating: "x", count: 100_000))
    let proxy = try TCPProxy(to: large.port)
    let socket = try LoopbackSocket.connect(to: proxy.port)
    defer { close(socket) }
    // The last byte does not come, so the connection remains open.
    let trap = proxy.trap(.answer, after: 99_999, .hold)
    _ = LoopbackSocket.write(socket, ArraySlice("GET / HTTP/1.1\r\n\r\n".utf8))
    try await trap.sprung()
    var buffer = [UInt8](repeating: 0, count: 1_000)
    for count in [1_000, 2_000] {
      #expect(LoopbackSocket.read(socket, &buffer).count == 1_000)
      #expect(try await proxy.readByteCountAtRest() == count)
    }
    trap.cut()
  }

  @Test("a cut leaves exactly the bytes before it, once, and only for its request")
  func cuts() async throws {
    let trap = proxy.trap(.answer, of: "GET /b", after: 9, .cut)
    #expect(try await ask("/a") == Self.answer)
    #expect(!trap.hasSprung)
    #expect(try await ask("/b") == "HTTP/1.1 ")
    try await trap.sprung()
    #expect(try await ask("/b") == Self.answer)
  }

  @Test("a trap skips the given number of exchanges, and springs the given number of times")
  func counts() async throws {
    proxy.trap(.answer, skipping: 1, times: 2, .cut)
    #expect(try await [ask(), ask(), ask(), ask()] == [Self.answer, "", "", Self.answer])
  }

  @Test("held bytes pass when they are released")
  func holds() async throws {
    let trap = proxy.trap(.answer, after: 4, .hold)
    async let answer = ask()
    try await trap.sprung()
    #expect(proxy.byteCount(.answer) == 4)
    trap.release()
    #expect(try await answer == Self.answer)
  }

  @Test("held bytes can be cut, and pass when the proxy's traps are removed")
  func cutsHeld() async throws {
    for isCut in [true, false] {
      let trap = proxy.trap(.answer, .hold)
      async let answer = ask()
      try await trap.sprung()
      isCut ? trap.cut() : proxy.removeTraps()
      #expect(try await answer == (isCut ? "" : Self.answer))
    }
  }

  @Test("dropped bytes never arrive while the connection stays open")
  func drops() async throws {
    let trap = proxy.trap(.request, .drop)
    async let answer = ask()
    try await trap.sprung()
    proxy.cutAll()
    #expect(try await answer == "")
    #expect(proxy.byteCount(.request) == 0)
  }

  @Test("a closure runs before the bytes pass, and delayed bytes pass later")
  func callsAndDelays() async throws {
    let proxy = proxy
    let seen = AsyncStream<Int>.makeStream()
    proxy.trap(.request, .call { seen.continuation.yield(proxy.byteCount(.request)) })
    proxy.trap(.answer, .delay(.milliseconds(30)))
    let start = ContinuousClock.now
    #expect(try await ask() == Self.answer)
    #expect(ContinuousClock.now - start >= .milliseconds(30))
    var counts = seen.stream.makeAsyncIterator()
    #expect(await counts.next() == 0)
  }

  @Test("connections can be refused, and redirected to another server")
  func refuses() async throws {
    proxy.refuse()
    #expect(try await ask() == "")
    proxy.refuse(false)
    let other = try CannedServer(saying: "other")
    proxy.retarget(to: other.port)
    #expect(try await ask() == "other")
  }

  @Test("stalled bytes wait in each direction, and pass when the direction opens again")
  func stalls() async throws {
    for (conditions, passed) in [
      (LinkConditions(requests: .stalled), 0), (LinkConditions(answers: .stalled), 1),
    ] {
      let before = proxy.byteCount(.request)
      proxy.set(conditions)
      async let answer = ask()
      if passed == 1 {
        try await eventually("the request to pass") { proxy.byteCount(.request) > before }
      }
      #expect((proxy.byteCount(.request) > before) == (passed == 1))
      proxy.set(LinkConditions())
      #expect(try await answer == Self.answer)
    }
  }

  @Test("a slow link delays both directions, and the slower of two conditions counts")
  func slows() async throws {
    let slow = LinkConditions(
      requests: .delayed(.milliseconds(20)), answers: .delayed(.milliseconds(30)))
    proxy.set(slow)
    let start = ContinuousClock.now
    #expect(try await ask() == Self.answer)
    #expect(ContinuousClock.now - start >= .milliseconds(50))
    let slower = LinkConditions(requests: .delayed(.milliseconds(40)), answers: .stalled)
    #expect(slow.joined(with: slower) == slower)
    #expect(slower.joined(with: slow) == slower)
    #expect(slow.joined(with: LinkConditions()) == slow)
  }

  @Test("connections are reset on both sides, including stalled ones")
  func resets() async throws {
    #expect(proxy.resetAll() == 0)
    let trap = proxy.trap(.request, .tell)
    proxy.set(LinkConditions(answers: .stalled))
    async let answer = ask()
    try await trap.sprung()
    #expect(proxy.resetAll() == 1)
    proxy.set(LinkConditions())
    #expect(try await answer == "")
    #expect(try await ask() == Self.answer)
  }
}

import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@Suite("Tokens of requests", .hangLimit)
struct TokenInterceptorTests {
  private let server = TokenServer()

  @Test("fifty requests that are rejected at one time cause one refresh, and all succeed")
  func storm() async throws {
    defer { server.stop() }
    let client = server.client(server.interceptor())
    try await withThrowingTaskGroup { group in
      for number in 0..<50 {
        group.addTask { try await client.send(NetworkRequest("/\(number)")).status }
      }
      for try await status in group { #expect(status == 200) }
    }
    #expect(server.refreshes == 1)
    server.expire("t2")
    _ = try await client.send(NetworkRequest("/again"))
    #expect(server.refreshes == 2)
  }

  @Test("a request is sent again once, a POST included, and then the rejection stands")
  func once() async throws {
    defer { server.stop() }
    let interceptor = TokenInterceptor(user: "ada") { rejected in rejected.map { $0 + "x" } ?? "no"
    }
    let client = server.client(interceptor)
    do throws(NetworkError) {
      _ = try await client.send(
        NetworkRequest("/post", method: .post, body: .bytes([1])))
      Issue.record("it was accepted")
    } catch {
      #expect(error.kind == .rejected(status: 401, reason: "HTTP 401"))
      #expect(error.response?.body == Array("who?".utf8))
    }
    #expect(server.count("/post") == 2)
  }

  @Test("uploads, forms, streams and downloads get the new token, with their whole content")
  func kinds() async throws {
    defer { server.stop() }
    let directory = try TemporaryDirectory()
    let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
    let file = directory.file("a.bin")
    try Data(content).write(to: file)
    var form = MultipartForm()
    form.addFile("f", path: file.path)
    func client() -> NetworkClient { server.client(server.interceptor()) }
    _ = try await client().send(
      NetworkRequest("/put", method: .put, body: .file(file.path)))
    #expect(server.bodies("/put") == [content])
    _ = try await client().send(NetworkRequest("/form", method: .post, body: .form(form)))
    #expect(server.bodies("/form").first.map { $0.count > content.count } == true)
    var streamed: [UInt8] = []
    for try await part in try await client().stream(NetworkRequest("/stream")).body {
      streamed += part
    }
    #expect(streamed == Array("content".utf8))
    let target = directory.file("b.bin")
    try await client().download(NetworkRequest("/download"), to: target.path)
    #expect(try Data(contentsOf: target) == Data("content".utf8))
    for path in ["/put", "/form", "/stream", "/download"] { #expect(server.count(path) == 2) }
  }

  @Test("a refresh that the server refuses ends in the rejection, and is not tried again")
  func refused() async throws {
    defer { server.stop() }
    server.refuseRefreshes()
    let client = server.client(server.interceptor())
    for _ in 1...3 {
      await #expect(throws: NetworkError.self) { try await client.send(NetworkRequest("/a")) }
    }
    #expect(server.refreshes == 1 && server.count("/a") == 3)
  }

  @Test("a refresh that fails ends the requests with its error, and the next one tries again")
  func failed() async throws {
    defer { server.stop() }
    let calls = Mutex(0)
    let interceptor = TokenInterceptor(user: "ada") { rejected async throws(NetworkError) in
      if rejected == nil { return "t0" }
      let call = calls.withLock { calls in
        calls += 1
        return calls
      }
      if call == 1 { throw NetworkError(.offline, "no way to the issuer") }
      return "t1"
    }
    let client = server.client(interceptor)
    do throws(NetworkError) {
      _ = try await client.send(NetworkRequest("/a"))
      Issue.record("it was accepted")
    } catch {
      #expect(error.kind == .offline)
    }
    #expect(try await client.send(NetworkRequest("/a")).status == 200)
  }

  @Test("a refresh may use the same client, and its request travels without a token")
  func sameClient() async throws {
    defer { server.stop() }
    let own = Mutex<NetworkClient?>(nil)
    let interceptor = TokenInterceptor(user: "ada") { rejected async throws(NetworkError) in
      guard rejected != nil, let client = own.withLock({ $0 }) else { return "t0" }
      let answer = try await client.send(NetworkRequest("/refresh", method: .post))
      return String(decoding: answer.body, as: UTF8.self)
    }
    let client = server.client(interceptor)
    own.withLock { $0 = client }
    #expect(try await client.send(NetworkRequest("/a")).status == 200)
    #expect(server.refreshes == 1)
  }

  @Test("a cancelled caller does not end the refresh, whose refresh token may be used up")
  func cancelled() async throws {
    defer { server.stop() }
    let (began, mayGoOn) = (Signal(), Signal())
    let calls = Mutex(0)
    let interceptor = TokenInterceptor(user: "ada") { rejected async throws(NetworkError) in
      if rejected == nil { return "t0" }
      calls.withLock { $0 += 1 }
      await began.set()
      await mayGoOn.wait()
      return Task.isCancelled ? nil : "t1"
    }
    let client = server.client(interceptor)
    let task = Task { try await client.send(NetworkRequest("/a")) }
    await began.wait()
    task.cancel()
    await #expect(throws: NetworkError.self) { try await task.value }
    await mayGoOn.set()
    #expect(try await client.send(NetworkRequest("/b")).status == 200)
    #expect(calls.withLock { $0 } == 1)
  }

  @Test("an absolute address gets no token")
  func absolute() async throws {
    defer { server.stop() }
    let transport = ScriptedTransport(.answer(200), .answer(200))
    var configuration = NetworkConfiguration("http://host")
    configuration.interceptors = [TokenInterceptor(user: "ada") { _ in "secret" }]
    let client = NetworkClient(
      configuration, transport: transport, connectivity: AssumedConnectivity())
    _ = try await client.send(NetworkRequest("/a"))
    _ = try await client.send(NetworkRequest(url: "http://elsewhere/a"))
    #expect(transport.requests.map { $0.headers["Authorization"] } == ["Bearer secret", nil])
  }

  @Test("a token that is set replaces the one that a refresh brings")
  func signIn() async throws {
    defer { server.stop() }
    let interceptor = TokenInterceptor(user: "ada") { _ in nil }
    let client = server.client(interceptor)
    await #expect(throws: NetworkError.self) { try await client.send(NetworkRequest("/a")) }
    interceptor.set("t1")
    #expect(try await client.send(NetworkRequest("/a")).status == 200)
    interceptor.set(nil)
    await #expect(throws: NetworkError.self) { try await client.send(NetworkRequest("/a")) }
  }
}

/// An event that happens once.
private actor Signal {
  private var isSet = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func set() {
    isSet = true
    for continuation in waiting { continuation.resume() }
    waiting = []
  }

  func wait() async {
    if isSet { return }
    await withCheckedContinuation { waiting.append($0) }
  }
}

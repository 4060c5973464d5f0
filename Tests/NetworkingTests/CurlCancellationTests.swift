import FerryTestSupport
import Foundation
import Testing

@testable import FerryNetworking

/// The limits are hours: only a cancellation that ends the transfer lets these tests end in time.
@Suite("Cancelling a transfer", .hangLimit)
struct CurlCancellationTests {
  private let transport = CurlTransport()
  private let silent = RawServer { exchange in
    exchange.waitForLeave()
    return false
  }

  private func request(_ path: String) -> TransportRequest {
    TransportRequest(
      .get, silent.url(path), timeout: .seconds(36_000), connectTimeout: .seconds(36_000))
  }

  @Test("a cancelled caller continues while the answer is awaited, and the connection closes")
  func send() async throws {
    defer { silent.stop() }
    let task = Task { [transport, request = request("/a")] in try await transport.send(request) }
    await silent.happened(.requested("/a"))
    task.cancel()
    #expect(await kind(task) == .cancelled)
    await silent.happened(.ended("/a"))
  }

  @Test("a transfer that is cancelled before its start sends nothing")
  func before() async throws {
    defer { silent.stop() }
    let gate = AsyncStream<Void>.makeStream()
    let task = Task { [transport, request = request("/b")] in
      for await _ in gate.stream {}
      return try await transport.send(request)
    }
    task.cancel()
    gate.continuation.finish()
    #expect(await kind(task) == .cancelled)
    #expect(silent.count(.requested("/b")) == 0)
  }

  @Test("100 transfers can be cancelled at once while others continue")
  func many() async throws {
    let server = RawServer { $0.answer("200 OK") }
    defer { server.stop(); silent.stop() }
    let tasks = (0..<100).map { index in
      Task { [transport, request = request("/\(index)")] in try await transport.send(request) }
    }
    for index in 0..<100 { await silent.happened(.requested("/\(index)")) }
    for task in tasks { task.cancel() }
    let response = try await transport.send(TransportRequest(.get, server.url("/")))
    #expect(response.status == 200)
    for task in tasks { #expect(await kind(task) == .cancelled) }
  }

  @Test("a transfer can be cancelled while a stream's head is awaited")
  func streamHead() async throws {
    defer { silent.stop() }
    let task = Task { [transport, request = request("/c")] in
      try await transport.stream(request).status
    }
    await silent.happened(.requested("/c"))
    task.cancel()
    #expect(await kind(task) == .cancelled)
  }

  @Test("releasing the transport ends its thread")
  func release() async throws {
    let ended = AsyncStream<Void>.makeStream()
    let server = RawServer { $0.answer("200 OK") }
    defer { server.stop(); silent.stop() }
    do {
      let engine = CurlEngine(CurlTransport.Configuration()) { ended.continuation.finish() }
      let transport = CurlTransport(engine: engine)
      _ = try await transport.send(TransportRequest(.get, server.url("/")))
    }
    for await _ in ended.stream {}
  }

  private func kind<T: Sendable>(_ task: Task<T, any Error>) async -> TransportError.Kind? {
    switch await task.result {
    case .success: nil
    case .failure(let error): (error as? TransportError)?.kind
    }
  }
}

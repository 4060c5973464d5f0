import FerryTestSupport
import Foundation
import Testing

@testable import FerryNetworking

/// The limits are hours: these tests end in time only if a cancellation ends the transfer.
@Suite("Cancelling a transfer", .hangLimit)
struct TransportCancellationTests {
  private let silent = RawServer { exchange in
    exchange.waitForLeave()
    return false
  }

  private func request(_ path: String) -> TransportRequest {
    TransportRequest(
      .get, silent.url(path), timeout: .seconds(36_000), connectTimeout: .seconds(36_000))
  }

  @Test(
    "a cancelled caller continues while the answer is awaited, and the connection closes",
    arguments: TransportUnderTest.allCases)
  func send(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    defer { silent.stop() }
    let task = Task { [transport, request = request("/a")] in try await transport.send(request) }
    await silent.happened(.requested("/a"))
    task.cancel()
    #expect(await failureKind(task) == .cancelled)
    await silent.happened(.ended("/a"))
  }

  @Test(
    "a transfer that is cancelled before its start sends nothing",
    arguments: TransportUnderTest.allCases)
  func before(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    defer { silent.stop() }
    let gate = AsyncStream<Void>.makeStream()
    let task = Task { [transport, request = request("/b")] in
      for await _ in gate.stream {}
      return try await transport.send(request)
    }
    task.cancel()
    gate.continuation.finish()
    #expect(await failureKind(task) == .cancelled)
    #expect(silent.count(.requested("/b")) == 0)
  }

  @Test(
    "100 transfers can be cancelled at once while others continue",
    arguments: TransportUnderTest.allCases)
  func many(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { $0.answer("200 OK") }
    defer { server.stop(); silent.stop() }
    let tasks = (0..<100).map { index in
      Task { [transport, request = request("/\(index)")] in try await transport.send(request) }
    }
    for index in 0..<100 { await silent.happened(.requested("/\(index)")) }
    for task in tasks { task.cancel() }
    let response = try await transport.send(TransportRequest(.get, server.url("/")))
    #expect(response.status == 200)
    for task in tasks { #expect(await failureKind(task) == .cancelled) }
  }

  @Test(
    "a transfer can be cancelled while a stream's head is awaited",
    arguments: TransportUnderTest.allCases)
  func streamHead(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    defer { silent.stop() }
    let task = Task { [transport, request = request("/c")] in
      try await transport.stream(request).status
    }
    await silent.happened(.requested("/c"))
    task.cancel()
    #expect(await failureKind(task) == .cancelled)
  }

  @Test("releasing the transport ends its thread")
  func release() async throws {
    let ended = AsyncStream<Void>.makeStream()
    let server = RawServer { $0.answer("200 OK") }
    defer { server.stop(); silent.stop() }
    do {
      let engine = CurlEngine(TransportConfiguration()) { ended.continuation.finish() }
      let transport = CurlTransport(engine: engine)
      _ = try await transport.send(TransportRequest(.get, server.url("/")))
    }
    for await _ in ended.stream {}
  }

  private func failureKind<T: Sendable>(_ task: Task<T, any Error>) async -> TransportError.Kind? {
    switch await task.result {
    case .success: nil
    case .failure(let error): (error as? TransportError)?.kind
    }
  }
}

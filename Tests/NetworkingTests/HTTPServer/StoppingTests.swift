import FerryTestSupport
import Testing

@testable import FerryHTTPServer

@Suite("Stopping the server", .hangLimit)
struct StoppingTests {
  @Test("a request in progress is completed, then its connection closes and the port is free")
  func graceful() async throws {
    let gate = Gate()
    let arrived = Collector<Int>()
    let server = try HTTPServer(configuration: .init().patient) { request in
      arrived.add(1)
      await gate.wait()
      return .text("done")
    }
    let client = Task {
      try await onThread {
        let client = try RawClient(port: server.port)
        let response = try client.exchange("POST", "/", body: [1])
        #expect(try client.isClosedByPeer())
        return response
      }
    }
    _ = await arrived.values(1)
    let stopping = Task { await server.stop(grace: .hangLimit) }
    let again = Task { await server.stop(grace: .hangLimit) }
    // New connections are refused while the old one is still served.
    try await refuses(server.port)
    gate.open()
    let response = try await client.value
    #expect(response.text == "done")
    #expect(response.headers["connection"] == "close")
    await stopping.value
    await again.value
    await server.stop(grace: .zero)
    try await withServer(.init(port: server.port), handler: describe) { second in
      #expect(second.port == server.port)
    }
  }

  @Test("a handler that exceeds the grace period is cancelled and its connection closed")
  func impatient() async throws {
    let arrived = Collector<Int>()
    let cancelled = Collector<Bool>()
    let server = try HTTPServer(configuration: .init().patient) { _ in
      arrived.add(1)
      try? await Task.sleep(for: .seconds(3600))
      cancelled.add(Task.isCancelled)
      return .text("late")
    }
    let client = Task {
      try await onThread {
        let client = try RawClient(port: server.port)
        try client.send(RawClient.message("GET", "/"))
        return try client.isClosedByPeer()
      }
    }
    _ = await arrived.values(1)
    await server.stop(grace: .milliseconds(10))
    #expect(try await client.value)
    #expect(await cancelled.values(1) == [true])
  }

  @Test("an idle keep-alive connection does not delay the stop")
  func idleConnection() async throws {
    let server = try HTTPServer(configuration: .init().patient, handler: describe)
    let client = try await onThread { () -> HTTPStreamTests.Listener in
      let client = try RawClient(port: server.port)
      _ = try client.exchange("GET", "/")
      return HTTPStreamTests.Listener(client: client)
    }
    await server.stop(grace: .seconds(3600))
    await #expect(throws: RawClientError.closed) { try await client.chunk() }
  }

  @Test("a server that is released stops by itself")
  func released() async throws {
    var server: HTTPServer? = try HTTPServer(configuration: .init().patient, handler: describe)
    let port = try #require(server?.port)
    #expect(try await onThread { try RawClient(port: port).exchange("GET", "/").status } == 200)
    server = nil
    // Another test's server may be given the same port meanwhile; the other one ends as well.
    try await refuses(port)
  }

  /// Returns when a port refuses new connections.
  private func refuses(_ port: UInt16) async throws {
    try await eventually("port \(port) to refuse connections") {
      try await onThread { (try? RawClient(port: port)) == nil }
    }
  }

  @Test("stopping under load answers each request whole or not at all")
  func underLoad() async throws {
    for _ in 0..<5 {
      let answered = Collector<Int>()
      let server = try HTTPServer(
        configuration: .init(onComplete: { _ in answered.add(1) }),
        handler: { request in
          await Task.yield()
          return .text(request.path)
        })
      let clients = (0..<8).map { _ in
        Task {
          try await onThread {
            guard let client = try? RawClient(port: server.port) else { return }
            for index in 0... {
              guard let response = try? client.exchange("GET", "/\(index)") else { return }
              #expect(response.text == "/\(index)")
            }
          }
        }
      }
      _ = await answered.values(500)
      await server.stop(grace: .seconds(5))
      for client in clients { try await client.value }
    }
  }
}

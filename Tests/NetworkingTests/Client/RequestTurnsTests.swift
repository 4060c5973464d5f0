import FerryTestSupport
import Synchronization
import Testing

@testable import FerryNetworking

@Suite("Requests at once", .hangLimit)
struct RequestTurnsTests {
  @Test("requests run in their order, as far as the limits permit; a busy host stops no other")
  func turns() {
    var turns = RequestTurns(limit: 3, hostLimit: 2)
    #expect(
      ["a", "a", "a", "b", "b"].map { turns.enter($0).mayRun } == [true, true, false, true, false])
    #expect(turns.leave(4) == [5])
    #expect(turns.leave(1) == [3])
    #expect(turns.leave(2) == [])
    #expect(turns.enter("a").mayRun)
    #expect(!turns.enter("b").mayRun)
    // A request that waits no longer has no turn.
    #expect(turns.leave(7) == [])
    #expect(turns.leave(5) == [])
    #expect(turns.leave(3) == [] && turns.leave(6) == [])
    #expect(turns.enter("c").mayRun)
  }

  @Test("no limit is below one")
  func least() {
    var turns = RequestTurns(limit: 0, hostLimit: -1)
    #expect(turns.enter("a").mayRun)
    #expect(!turns.enter("b").mayRun)
  }

  @Test(
    "a client sends no more requests at once than its limit, and a cancelled one loses its turn")
  func client() async throws {
    let transport = HeldTransport()
    var configuration = NetworkConfiguration("http://x")
    configuration.requestsPerHostMax = 2
    let client = NetworkClient(configuration, transport: transport)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<5 {
        group.addTask { try await client.send(NetworkRequest("/\(number)")) }
      }
      try await eventually("two requests") { transport.running == 2 }
      let waiting = Task { try await client.send(NetworkRequest("/late")) }
      waiting.cancel()
      let error = await #expect(throws: NetworkError.self) { try await waiting.value }
      #expect(error?.kind == .cancelled)
      transport.release()
      try await group.waitForAll()
    }
    #expect(transport.most == 2)
  }

  @Test("a stream has its turn until its body ends or loses its reader")
  func stream() async throws {
    let transport = ScriptedTransport(
      .answer(200, [:], "one"), .answer(200, [:], "two"), .answer(200, [:], "three"))
    var configuration = NetworkConfiguration("http://x")
    configuration.requestsMax = 1
    let client = NetworkClient(configuration, transport: transport)
    do {
      let first = try await client.stream(NetworkRequest("/1"))
      for try await _ in first.body {}
    }
    do { _ = try await client.stream(NetworkRequest("/2")) }
    #expect(try await client.send(NetworkRequest("/3")).body == Array("three".utf8))
  }
}

/// A transport whose requests last until it releases them.
private final class HeldTransport: Transport {
  private struct State {
    var running = 0
    var most = 0
    var isReleased = false
  }

  private let state = Mutex(State())

  var running: Int { state.withLock { $0.running } }
  var most: Int { state.withLock { $0.most } }

  func release() { state.withLock { $0.isReleased = true } }

  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    state.withLock { state in
      state.running += 1
      state.most = max(state.most, state.running)
    }
    try? await eventually("the release") { state.withLock { $0.isReleased } }
    state.withLock { $0.running -= 1 }
    return TransportResponse(status: 200, headers: [:], body: [])
  }

  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
    throw TransportError(.other, "no stream")
  }
}

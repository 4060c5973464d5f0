import FerryNetworking
import FerryProtocol
import FerrySyncClient
import FerryTestSupport
import Synchronization
import Testing

@Suite("A busy server", .hangLimit)
struct BusyServerTests {
  /// Refuses everything, with a wish for a pause.
  private struct BusyTransport: Transport {
    let retryAfter: String?

    func send(
      _ request: TransportRequest
    ) async throws(TransportError) -> TransportResponse {
      var headers: TransportHeaders = ["Content-Type": "application/problem+json"]
      headers["Retry-After"] = retryAfter
      return TransportResponse(
        status: 503, headers: headers, body: Problem(.unavailable, "busy").encoded())
    }

    func stream(
      _ request: TransportRequest
    ) async throws(TransportError) -> TransportStream {
      throw TransportError(.offline, "no streams")
    }
  }

  /// Returns the pauses of a device that tries to connect until it gives up.
  private func pauses(retryAfter: String?) async throws -> [Duration] {
    let directory = try TemporaryDirectory()
    let pauses = Mutex<[Duration]>([])
    var surroundings = ReplicaSurroundings.system
    surroundings.random = { 0 }
    surroundings.sleep = { pause in pauses.withLock { $0.append(pause) } }
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: BusyTransport(retryAfter: retryAfter),
      in: surroundings)
    await #expect {
      try await replica.connect(to: "http://127.0.0.1:1", space: "demo")
    } throws: {
      guard case .refused(let problem) = $0 as? ReplicaError else { return false }
      return problem.code == .unavailable
    }
    return pauses.withLock { $0 }
  }

  /// Fails in one way, and counts how often.
  private final class FailingTransport: Transport {
    let kind: TransportError.Kind
    private let count = Atomic<Int>(0)

    init(_ kind: TransportError.Kind) { self.kind = kind }

    var attempts: Int { count.load(ordering: .relaxed) }

    func send(
      _ request: TransportRequest
    ) async throws(TransportError) -> TransportResponse {
      count.add(1, ordering: .relaxed)
      throw TransportError(kind, "failed")
    }

    func stream(
      _ request: TransportRequest
    ) async throws(TransportError) -> TransportStream {
      throw TransportError(kind, "failed")
    }
  }

  @Test(
    "a server that does not answer within the time limit is not waited for again",
    arguments: [(TransportError.Kind.timedOut, 1), (.offline, 4), (.interrupted, 4)])
  func silent(kind: TransportError.Kind, attempts: Int) async throws {
    let directory = try TemporaryDirectory()
    let transport = FailingTransport(kind)
    var surroundings = ReplicaSurroundings.system
    surroundings.sleep = { _ in }
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: transport, in: surroundings)
    await #expect(throws: ReplicaError.self) {
      try await replica.connect(to: "http://127.0.0.1:1", space: "demo")
    }
    #expect(transport.attempts == attempts)
  }

  @Test("a client waits as long as the server asks, up to a limit")
  func retryAfter() async throws {
    #expect(try await pauses(retryAfter: nil) == [.zero, .zero, .zero])
    #expect(try await pauses(retryAfter: "7") == [.seconds(7), .seconds(7), .seconds(7)])
    #expect(try await pauses(retryAfter: "10") == [.seconds(10), .seconds(10), .seconds(10)])
  }

  @Test("if a server asks for a long pause, a sync ends with an error that states the pause")
  func longPause() async throws {
    #expect(try await pauses(retryAfter: "11") == [])
    let directory = try TemporaryDirectory()
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: BusyTransport(retryAfter: "999999"))
    await #expect {
      try await replica.connect(to: "http://127.0.0.1:1", space: "demo")
    } throws: {
      guard case .refused(let problem) = $0 as? ReplicaError else { return false }
      return problem.detail == "busy; the server asks for a pause of 11 days"
        && ReplicaError.refused(problem).isTransient
    }
  }
}

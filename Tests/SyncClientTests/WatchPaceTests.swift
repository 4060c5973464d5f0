import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerrySyncClient

/// A watch whose event streams fail while the syncs succeed, as behind some proxies.
@Suite("Requests of a watch without event streams", .hangLimit)
struct WatchPaceTests {
  /// The pauses with the largest jitter.
  private static let backOffs = [250, 500, 1_000, 2_000, 4_000].map {
    Duration.milliseconds($0) - .nanoseconds(1)
  }
  private static let poll = Duration.seconds(7)

  private struct Stage {
    let server: ScriptedServer
    let clock: ManualClock
    let watch: Task<Void, any Error>
    let directory: TemporaryDirectory

    /// Starts a watch of a server with the given event streams. No pause ends by itself.
    init(_ streams: @escaping ScriptedServer.Streams) async throws {
      let clock = ManualClock()
      (server, self.clock) = (ScriptedServer(streams: streams), clock)
      directory = try TemporaryDirectory()
      let replica = try await server.replica(in: directory)
      await replica.close()
      var surroundings = ReplicaSurroundings.system
      surroundings.sleep = { try await clock.sleep($0) }
      surroundings.random = { .max }
      surroundings.watch.remotePoll = WatchPaceTests.poll
      let watched = try await Replica.open(replica.path, transport: server, in: surroundings)
      watch = Task { try await watched.watch() }
    }

    func end() async {
      watch.cancel()
      _ = await watch.result
    }

    private var pulls: Int { server.requests.filter { $0.url.contains("/changes") }.count }

    /// Polls several times, and checks that no other request follows.
    func expectPolls(streams: Int) async throws {
      for _ in 0..<5 {
        let before = pulls
        // Other work of the watch pauses for as long, so one end may not be the poll's.
        try await eventually("a sync") {
          clock.endAll(WatchPaceTests.poll)
          return pulls > before
        }
      }
      #expect(server.streamRequests == streams)
    }

    func expectStreams(_ expected: Int) async throws {
      try await eventually("stream \(expected)") { server.streamRequests == expected }
    }
  }

  @Test("streams that are refused, reset or ended at once are tried again after pauses that grow")
  func failing() async throws {
    let reset: ScriptedServer.Streams = { (_) throws(TransportError) in
      throw TransportError(.offline, "the connection was reset")
    }
    let refused: ScriptedServer.Streams = { _ in
      TransportStream(status: 403, headers: [:], body: .empty)
    }
    let ended: ScriptedServer.Streams = { _ in
      TransportStream(status: 200, headers: ["Content-Type": "text/event-stream"], body: .empty)
    }
    for streams in [reset, refused, ended] {
      let stage = try await Stage(streams)
      for (number, pause) in Self.backOffs.enumerated() {
        try await stage.expectStreams(number + 1)
        try await stage.clock.wait(for: pause)
        try await stage.expectPolls(streams: number + 1)
        try await stage.clock.end(pause)
      }
      await stage.end()
    }
  }
}

extension TransportBody {
  /// A body without a byte.
  fileprivate static var empty: TransportBody {
    TransportBody(next: { () throws(TransportError) in nil }, cancel: {})
  }
}

/// A clock on which a test ends each pause.
private final class ManualClock: Sendable {
  private struct State {
    var next = 0
    var pauses: [(id: Int, length: Duration, end: CheckedContinuation<Void, any Error>)] = []
  }

  private let state = Mutex(State())

  func sleep(_ length: Duration) async throws {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { end in
        state.withLock { $0.pauses.append((id, length, end)) }
        // The cancellation may have come before.
        if Task.isCancelled { remove { $0.id == id }?.resume(throwing: CancellationError()) }
      }
    } onCancel: {
      remove { $0.id == id }?.resume(throwing: CancellationError())
    }
  }

  private func remove(
    _ isPause: (_ pause: (id: Int, length: Duration)) -> Bool
  ) -> CheckedContinuation<Void, any Error>? {
    state.withLock { state in
      let place = state.pauses.firstIndex { isPause(($0.id, $0.length)) }
      return place.map { state.pauses.remove(at: $0).end }
    }
  }

  /// Waits for a pause of a given length.
  func wait(for length: Duration) async throws {
    try await eventually("a pause of \(length)") {
      state.withLock { $0.pauses.contains { $0.length == length } }
    }
  }

  /// Ends all present pauses of a given length.
  func endAll(_ length: Duration) {
    while let pause = remove({ $0.length == length }) { pause.resume() }
  }

  /// Ends one pause, as soon as there is one of this length.
  func end(_ length: Duration) async throws {
    try await wait(for: length)
    remove { $0.length == length }?.resume()
  }
}

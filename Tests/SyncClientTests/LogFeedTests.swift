import FerryNetworking
import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncClient

/// The log of a replica, as it reaches the program.
@Suite("Delivered log entries", .hangLimit)
struct LogFeedTests {
  /// A server out of reach.
  private struct UnreachableServer: Transport {
    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
      throw TransportError(.offline, "no network")
    }

    func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
      throw TransportError(.offline, "no network")
    }
  }

  private let directory: TemporaryDirectory
  private let entries: AsyncStream<LogEntry>
  private let entry: AsyncStream<LogEntry>.Continuation

  init() throws {
    directory = try TemporaryDirectory()
    (entries, entry) = AsyncStream.makeStream()
  }

  private var path: String { directory.file("replica.db").path }

  private func open(
    _ transport: any Transport, _ sink: @escaping @Sendable (LogEntry) -> Void
  ) async throws -> Replica {
    var surroundings = ReplicaSurroundings.system
    surroundings.log = sink
    surroundings.sleep = { _ in }
    return try await Replica.open(path, transport: transport, in: surroundings)
  }

  /// Notes an event as the replica's own work does.
  private func note(_ replica: Replica, _ event: String) async throws {
    try await replica.thread.run { try $0.log(event, "as the test requires") }
  }

  /// Returns the entries until one of this event.
  private func received(until last: String) async -> [LogEntry] {
    var received: [LogEntry] = []
    for await entry in entries {
      received.append(entry)
      if entry.event == last { break }
    }
    return received
  }

  @Test("syncs, their errors and other events arrive in the order of the log")
  func order() async throws {
    let healthy = ScriptedServer()
    try await healthy.replica(in: directory).close()
    let replica = try await open(healthy) { [entry] in entry.yield($0) }
    try await replica.write { try $0.execute("INSERT INTO notes(id) VALUES ('a')") }
    try await replica.sync()
    for number in 1...20 { try await note(replica, "event \(number)") }
    await replica.close()
    // The entries of a closed replica still arrive, beside those of the next one.
    var received = await received(until: "event 20")
    let offline = try await open(UnreachableServer()) { [entry] in entry.yield($0) }
    await #expect(throws: ReplicaError.self) { try await offline.sync() }
    try await note(offline, "last")
    received += await self.received(until: "last")
    #expect(received == Array(try await offline.log().reversed().suffix(received.count)))
    #expect(received.map(\.event) == ["sync"] + (1...20).map { "event \($0)" } + ["error", "last"])
  }

  @Test("an entry of a transaction that is rolled back does not arrive")
  func rolledBack() async throws {
    let replica = try await open(ScriptedServer()) { [entry] in entry.yield($0) }
    await #expect(throws: ReplicaError.cancelled) {
      try await ReplicaError.converting {
        try await replica.thread.run { file in
          try file.connection.transaction {
            try file.log("lost", "with its transaction")
            throw ReplicaError.cancelled
          }
        }
      }
    }
    try await note(replica, "kept")
    #expect(await received(until: "kept").map(\.event) == ["kept"])
  }

  @Test("a failure that the log does not keep arrives, too")
  func withoutServer() async throws {
    let replica = try await open(ScriptedServer()) { [entry] in entry.yield($0) }
    await #expect(throws: ReplicaError.notConfigured) { try await replica.sync() }
    let received = await received(until: "error")
    #expect(received.map(\.detail) == [ReplicaError.notConfigured.description])
    #expect(try await replica.log().isEmpty)
  }

  @Test("a closure that blocks does not hold up the replica, and runs on one thread of its own")
  func blocking() async throws {
    let release = DispatchSemaphore(value: 0)
    let threads = AsyncStream<String?>.makeStream()
    let replica = try await open(ScriptedServer()) { [entry] received in
      release.wait()
      threads.continuation.yield(Thread.current.name)
      entry.yield(received)
    }
    for number in 1...5 { try await note(replica, "event \(number)") }
    try await replica.write { try $0.execute("CREATE TABLE notes(id TEXT PRIMARY KEY)") }
    #expect(try await replica.read { try $0.query("SELECT * FROM notes").count } == 0)
    await replica.close()
    for _ in 1...5 { release.signal() }
    #expect(await received(until: "event 5").map(\.event) == (1...5).map { "event \($0)" })
    threads.continuation.finish()
    for await name in threads.stream { #expect(name == "ferry-log") }
  }
}

import FerryNetworking
import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncClient

/// Calls of an app while its replica fills in a first list.
@Suite("An app's own calls while a first list is filled in", .hangLimit)
struct FilledListWritesTests {
  /// Notes of the events, in order.
  private final class Events: Sendable {
    private let list = Mutex<[String]>([])
    var all: [String] { list.withLock { $0 } }
    func add(_ event: String) { list.withLock { $0.append(event) } }
  }

  private let directory: TemporaryDirectory
  private let maker = PageMaker()

  init() throws { directory = try TemporaryDirectory() }

  private var path: String { directory.file("replica.db").path }

  /// Returns a replica with an empty table, and a server with a list of eight notes for it.
  ///
  /// - Parameter between: runs between two slices.
  private func replica(
    between: @escaping @Sendable () async throws -> Void
  ) async throws -> Replica {
    let notes = (0..<8).map {
      maker.change(SequenceNumber($0 + 1), "notes", Name("n\($0)"), [Column("body", "x")])
    }
    let page = maker.page(notes).body
    let server = ScriptedServer { request, _ in
      request.url.contains("/changes") ? ScriptedServer.json(page) : nil
    }
    try await server.replica(in: directory).close()
    var surroundings = ReplicaSurroundings.system
    surroundings.firstLists.changesMin = 1
    surroundings.firstLists.sliceChanges = 2
    surroundings.firstLists.pause = { _ in .milliseconds(1) }
    surroundings.sleep = { _ in try await between() }
    return try await Replica.open(path, transport: server, in: surroundings)
  }

  private static let count: @Sendable (Database) throws -> Value? = {
    try $0.query("SELECT count(*) FROM notes").first?.values[0]
  }

  @Test(
    "a write that comes while a slice is written runs before the next slice, and so does a read")
  func between() async throws {
    let events = Events()
    let opened = Mutex<Replica?>(nil)
    let write = Mutex<Task<Void, any Error>?>(nil)
    let replica = try await replica {
      guard let replica = opened.withLock({ $0 }), let task = write.withLock({ $0 }) else { return }
      try await task.value
      let count = try await replica.read(Self.count)
      events.add(count == 1 ? "read" : "read too many")
      write.withLock { $0 = nil }
    }
    opened.withLock { $0 = replica }
    let report = try await replica.pull { progress in
      guard progress.phase == .applying else { return }
      events.add("slice \(progress.completed)")
      // On the replica's thread: the write has to wait for this slice.
      guard progress.completed == 2 else { return }
      write.withLock { task in
        task = Task {
          try await replica.write { try $0.execute("INSERT INTO notes VALUES ('own', 'mine')") }
          events.add("write")
        }
      }
    }
    opened.withLock { $0 = nil }
    #expect(report.pulled == 8)
    #expect(events.all == ["slice 2", "write", "read", "slice 4", "slice 6", "slice 8"])
    #expect(try await replica.read(Self.count) == 9)
    #expect(try await replica.operations.pending().map(\.operation.key.record) == ["own"])
  }

  @Test("a live query sees the list whole, after the exchange")
  func observed() async throws {
    let replica = try await replica {}
    var counts: [Value?] = []
    var pull: Task<SyncReport, any Error>?
    for try await count in replica.observe(Self.count) {
      counts.append(count)
      if count == 8 { break }
      if pull == nil { pull = Task { try await replica.pull() } }
    }
    #expect(counts == [0, 8])
    #expect(try await pull?.value.pulled == 8)
  }

  @Test(
    "a pull that is cancelled between two slices leaves no copies, and the next one ends the list")
  func cancelled() async throws {
    let isFirst = Atomic(true)
    let replica = try await replica {
      guard isFirst.exchange(false, ordering: .relaxed) else { return }
      throw CancellationError()
    }
    await #expect(throws: ReplicaError.cancelled) { try await replica.pull() }
    let other = try SQLiteConnection(path: path)
    #expect(
      try other.count("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'ferry_first%'") == 0)
    #expect(try other.count("SELECT count(*) FROM notes") == 0)
    #expect(try await replica.pull().pulled == 8)
    #expect(try await replica.read(Self.count) == 8)
  }
}

import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Other programs that lock the device's file for longer than a statement waits.
@Suite("A file that another program locks", .hangLimit)
struct LockedFileTests {
  /// Surroundings in which no statement waits.
  private static var impatient: ReplicaSurroundings {
    var surroundings = ReplicaSurroundings.system
    surroundings.busyTimeout = .milliseconds(1)
    return surroundings
  }

  @Test("a file that nobody else may open is busy, and not something else than a replica")
  func opening() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer()
    let replica = try await server.replica(in: directory)
    await replica.close()
    var other: SQLiteConnection? = try SQLiteConnection(path: replica.path)
    try other?.execute("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE")
    let error = await #expect(throws: ReplicaError.self) {
      _ = try await Replica.open(replica.path, transport: server, in: Self.impatient)
    }
    #expect(error?.isBusy == true && error?.isTransient == true)
    other = nil
    let opened = try await Replica.open(replica.path, transport: server, in: Self.impatient)
    #expect(try await opened.status().pending == 0)
  }

  @Test("each call on a locked file reports that it is busy, and the same call works later")
  func calls() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer()
    try await server.replica(in: directory).close()
    let path = directory.file("replica.db").path
    let replica = try await Replica.open(path, transport: server, in: Self.impatient)
    let other = try SQLiteConnection(path: path)
    let calls: [(String, @Sendable (Replica) async throws -> Void)] = [
      ("insert", { try await $0.write { _ = try $0.execute("INSERT INTO notes(id) VALUES (1)") } }),
      ("delete", { try await $0.write { _ = try $0.execute("DELETE FROM notes") } }),
      ("track", { try await $0.track("notes") }),
      ("sync", { _ = try await $0.sync() }),
      ("untrack", { try await $0.untrack("notes") }),
    ]
    for (name, call) in calls {
      try other.execute("BEGIN IMMEDIATE")
      let error = await #expect(throws: ReplicaError.self, "\(name)") { try await call(replica) }
      #expect(error?.isBusy == true, "\(name): \(String(describing: error))")
      #expect(try await replica.read { try $0.query("SELECT * FROM notes").count } >= 0)
      try other.execute("COMMIT")
      try await call(replica)
    }
  }

  @Test("a step of a migration that finds the file locked has not failed, and runs later")
  func migration() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("replica.db").path
    let replica = try await Replica.open(path, transport: ScriptedServer(), in: Self.impatient)
    var migrator = Migrator()
    migrator.add("first") { try $0.execute("CREATE TABLE first(id TEXT PRIMARY KEY)") }
    let other = try SQLiteConnection(path: path)
    try other.execute("BEGIN IMMEDIATE")
    let steps = migrator
    let error = await #expect(throws: ReplicaError.self) {
      try await replica.migrate(steps) { failure in
        Issue.record("\(failure)")
        return .retry
      }
    }
    #expect(error?.isBusy == true)
    try other.execute("COMMIT")
    #expect(try await replica.migrate(steps).ran == ["first"])
  }

  @Test("a watch waits for a locked file, and sends the write when the file is free")
  func watch() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer()
    try await server.replica(in: directory).close()
    let path = directory.file("replica.db").path
    let replica = try await Replica.open(path, transport: server, in: Self.impatient)
    try await replica.write { try $0.execute("INSERT INTO notes(id) VALUES ('a')") }
    let other = try SQLiteConnection(path: path)
    try other.execute("BEGIN IMMEDIATE")
    let (events, sink) = AsyncStream<Replica.WatchEvent>.makeStream()
    let watch = Task {
      defer { sink.finish() }
      try await replica.watch(onEvent: { sink.yield($0) })
    }
    var isFree = false
    for await event in events {
      if case .offline(let error) = event, error.isBusy, !isFree {
        try other.execute("COMMIT")
        isFree = true
      }
      if case .synced(let report) = event, report.pushed == 1 { watch.cancel() }
    }
    #expect(isFree)
    #expect(server.operations.map(\.key.record) == ["a"])
    let result = await watch.result
    #expect(throws: ReplicaError.cancelled) { try result.get() }
  }
}

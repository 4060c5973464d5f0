import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncClient

@Suite("Replica.prepare", .hangLimit)
struct PreparedConnectionTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @Test("a write of a prepared connection is pending, and the replica's live queries see it")
  func prepared() async throws {
    let path = directory.file("replica.db").path
    let replica = try await Replica.open(path)
    try await replica.write { _ = try $0.execute("CREATE TABLE tasks(id TEXT PRIMARY KEY)") }
    try await replica.track("tasks")
    var counts = replica.observe { try $0.query("SELECT * FROM tasks").count }.makeAsyncIterator()
    #expect(try await counts.next() == 0)
    do {
      let host = try HostConnection(path: path)
      try Replica.prepare(try #require(host.handle))
      try host.run("INSERT INTO tasks VALUES ('a')")
    }
    #expect(try await counts.next() == 1)
    #expect(try await replica.status().pending == 1)
    try await replica.write { _ = try $0.execute("INSERT INTO tasks VALUES ('b')") }
    let pending = try await replica.operations.pending(limit: 10)
    #expect(pending.map(\.operation.key.record) == ["a", "b"])
  }

  @Test("a file that is no replica is refused and keeps its bytes")
  func plain() throws {
    let file = directory.file("plain.db")
    let host = try HostConnection(path: file.path)
    try host.run("CREATE TABLE t(x)")
    let bytes = try Data(contentsOf: file)
    let error = #expect(throws: ReplicaError.self) {
      try Replica.prepare(try #require(host.handle))
    }
    #expect(error?.description.contains("plain.db cannot be opened: it is not a replica") == true)
    #expect(try Data(contentsOf: file) == bytes)
    #expect(try host.run("PRAGMA foreign_keys; PRAGMA recursive_triggers") == ["0", "0"])
  }

  @Test("a connection within a transaction is refused with the reason")
  func transaction() async throws {
    let path = directory.file("replica.db").path
    let replica = try await Replica.open(path)
    await replica.close()
    let host = try HostConnection(path: path)
    try host.run("BEGIN")
    let error = #expect(throws: ReplicaError.self) {
      try Replica.prepare(try #require(host.handle))
    }
    #expect(error?.description.contains("a transaction is open") == true)
    try host.run("COMMIT")
    try Replica.prepare(try #require(host.handle))
  }
}

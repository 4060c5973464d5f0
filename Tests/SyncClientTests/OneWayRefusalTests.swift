import FerryProtocol
import FerrySQLite
import Testing

@testable import FerrySyncClient

/// The server's refusals of upload-only tables.
extension OneWayTests {
  @Test("a refused record keeps its row, is marked, and is sent with its repair after a retry")
  func refused() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'LOUD')")
    try replica.run("INSERT INTO messages VALUES ('b', 'x')")
    try refuse(sent(replica)[0], "a", replica)
    #expect(try replica.file.refreshes.isEmpty())
    #expect(try sent(replica).flatMap(\.operations).map(\.key.record) == ["b"])
    let upload = try #require(try replica.file.failedUploads.states(of: nil, limit: 1).first)
    #expect(upload.isFailed && upload.detail == "schema_violation: too loud")
    try replica.run("UPDATE messages SET body = 'quiet' WHERE id = 'a'")
    try confirm(replica.freeze(), replica)
    #expect(try states(replica) == ["a dirty failed"])
    #expect(try replica.file.uploads.retry(table: "messages", record: "a") == 1)
    #expect(try replica.file.reports.status().quarantined == 0)
    let repaired = try sent(replica).flatMap(\.operations)
    #expect(repaired.map(\.kind) == [.insert])
    #expect(repaired[0].columns == [Column("body", "quiet")])
  }

  @Test("editing a refused record in the quarantine changes its row as well")
  func edited() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'LOUD')")
    try refuse(sent(replica)[0], "a", replica)
    let entry = try #require(try replica.file.quarantine.oldest(1).first)
    try replica.file.quarantineAnswers.retry(entry.number, changing: [Column("body", "quiet")])
    #expect(try replica.rows("SELECT body FROM messages") == [["quiet"]])
    let sent = try sent(replica).flatMap(\.operations)
    #expect(sent.map(\.kind) == [.insert])
    #expect(sent[0].columns == [Column("body", "quiet")])
  }

  @Test("a refused transaction that also wrote to a two-way table is reverted there only")
  func refusedMixed() throws {
    let replica = try outbox()
    try replica.file.write { database in
      try database.execute("INSERT INTO messages VALUES ('a', 'LOUD')")
      try database.execute("INSERT INTO tasks(id, title) VALUES ('t', 'x')")
    }
    let first = try sent(replica)[0]
    try refuse(first, "a", replica)
    let tasks = RecordKey(table: "tasks", record: "t")
    #expect(try replica.file.refreshes.next() == [tasks])
    let gone = Stamp(time: .zero, device: DeviceID(UniqueID(high: 0, low: 0)))
    try replica.apply([
      Change(
        sequence: 0, key: tasks,
        state: RecordState(deleted: SequencedStamp(stamp: gone, sequence: 0)))
    ])
    #expect(try replica.rows("SELECT id FROM tasks").isEmpty)
    #expect(try replica.rows("SELECT id FROM messages") == [["a"]])
    #expect(try replica.file.uploads.retry(table: nil, record: nil) == 1)
    #expect(try replica.rows("SELECT id FROM tasks") == [["t"]])
    let again = try sent(replica).flatMap(\.operations)
    #expect(again.map(\.key) == first.operations.map(\.key))
    #expect(again[0].id == first.operations[0].id)
    #expect(Set(try replica.file.queue.oldest(9).map(\.group)).count == 1)
  }

  @Test("refused changes of an automatic table are retried once with each sync")
  func refusedAutomatic() throws {
    let replica = try outbox(automatic: true)
    try replica.run("INSERT INTO messages VALUES ('a', 'LOUD')")
    let first = try sent(replica)
    try refuse(first[0], "a", replica)
    #expect(try replica.freeze().isEmpty)
    let second = try sent(replica)
    #expect(second[0].operations.map(\.id) == first[0].operations.map(\.id))
    try refuse(second[0], "a", replica)
    try replica.run("UPDATE messages SET body = 'quiet' WHERE id = 'a'")
    let third = try sent(replica).flatMap(\.operations)
    #expect(third.map(\.kind) == [.insert])
    #expect(third[0].columns == [Column("body", "quiet")])
    #expect(try replica.file.reports.status().quarantined == 0)
  }

  @Test("batches without known rows are listed one by one, each with its condition and effect")
  func batches() throws {
    let replica = try outbox()
    try replica.run("INSERT INTO messages VALUES ('a', 'x'), ('b', 'y')")
    try confirm(sent(replica), replica)
    func listed() throws -> [UploadState] { try replica.file.uploads.states(of: nil, limit: 9) }
    let conditions: [RecordPredicate] = [
      .compare(.column("body"), .equal, "x"), .compare(.column("body"), .equal, "elsewhere"),
    ]
    _ = try replica.file.write {
      try $0.batch("messages", where: conditions[0], set: ["body": "z"])
    }
    _ = try replica.file.write { try $0.batchDelete("messages", where: conditions[1]) }
    // The second one changes no row here.
    let elsewhere = Batch(.delete, where: conditions[1])
    #expect(try listed().map(\.batch) == [elsewhere, nil])
    #expect(try states(replica) == [" deleted", "a dirty"])
    try refuse(try #require(sent(replica).first), "", replica)
    #expect(try listed().map(\.batch) == [Batch(.set, where: conditions[0]), elsewhere])
    #expect(try states(replica) == [" dirty failed", " deleted"])
    try refuse(try #require(sent(replica).first), "", replica)
    #expect(try listed().map(\.batch) == [Batch(.set, where: conditions[0]), elsewhere])
    #expect(try states(replica) == [" dirty failed", " deleted failed"])
    #expect(try replica.file.uploads.retry(table: nil, record: nil) == 2)
    #expect(try sent(replica).flatMap(\.operations).map(\.batch?.effect) == [.set, .delete])
  }

  // MARK: Changing direction
}

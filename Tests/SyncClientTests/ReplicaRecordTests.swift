import FerryPersistence
import FerryProtocol
import FerrySyncClient
import FerryTestSupport
import Testing

private struct Job: Codable, Sendable, Equatable, TableRecord {
  var id: String
  var title: String
  var done = false
  static let table = Table<Job>(
    "jobs", [.text("id").primaryKey(), .text("title").notNull(), .integer("done")])
}

/// The record layer over a replica's file.
@Suite("Records in a replica", .hangLimit)
struct ReplicaRecordTests {
  /// Uses a file only by the common protocol of replicas and local databases.
  private func add(_ job: Job, to access: some DatabaseAccess) async throws -> Int {
    try await access.write { try job.insert(in: $0) }
    return try await access.read { try Job.table.count(in: $0) }
  }

  @Test("writes of records to a tracked table are recorded in their transaction")
  func recording() async throws {
    let directory = try TemporaryDirectory()
    let replica = try await Replica.open(directory.file("replica.db").path)
    try await replica.write { try Job.table.create(in: $0) }
    try await replica.track("jobs")
    #expect(try await add(Job(id: "a", title: "one"), to: replica) == 1)
    try await DataCenter(replica).write { database in
      try Job(id: "b", title: "two").insert(in: database)
      try Job.all.where(Field("id") == "a").update(["done": true], in: database)
    }
    let pending = try await replica.operations.pending()
    #expect(pending.map(\.operation.key.record) == ["a", "b", "a"])
  }

  @Test("a local database reads a replica's file, and fails only for writes to tracked tables")
  func localDatabase() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("replica.db").path
    let replica = try await Replica.open(path)
    try await replica.write { try Job.table.create(in: $0) }
    try await replica.track("jobs")
    _ = try await add(Job(id: "a", title: "one"), to: replica)
    let local = try await LocalDatabase.open(path)
    await #expect {
      _ = try await add(Job(id: "b", title: "two"), to: local)
    } throws: { error in
      (error as? DatabaseError)?.isRefusedWrite == true
        && "\(error)".contains("this file is a replica") && "\(error)".contains("Replica.open")
    }
    for statement in ["UPDATE jobs SET done = 1", "DELETE FROM jobs"] {
      await #expect(throws: DatabaseError.self) {
        try await local.write { try $0.execute(statement) }
      }
    }
    let own = Table<RecordColumns>("own", [.text("x")])
    try await local.write { try own.insert(["x": "free"], in: $0) }
    #expect(try await local.read { try Job.all.fetch($0) } == [Job(id: "a", title: "one")])
    #expect(try await replica.operations.pending().count == 1)
  }
}

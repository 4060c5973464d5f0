import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The catalogue of missions, as pull lists bring it to a device.
@Suite("The catalogue of missions", .hangLimit)
struct MissionCatalogueTests {
  private func record(_ id: String, version: Int64 = 1) throws -> MissionRecord {
    let manifest = MissionManifest(
      space: try #require(SpaceName("s")), id: try #require(MissionID(id)), version: version,
      title: "Title", summary: "Summary", priority: 7, after: [try #require(MissionID("first"))],
      items: [])
    let hash = try #require(ContentHash([UInt8](repeating: 9, count: 32)))
    return MissionRecord(
      of: manifest, hash: hash, manifestSize: 12, signature: [1, 2], signer: [3], publishedAt: 5)
  }

  private func published(
    _ record: MissionRecord, at sequence: SequenceNumber, _ more: [Column] = []
  ) -> Change {
    PageMaker().change(sequence, MissionRecord.table, Name(record.id.value), record.columns + more)
  }

  private func kept(_ fixture: ReplicaFixture) throws -> [MissionRecord] {
    try fixture.file.write { database in
      try database.query("SELECT * FROM ferry_missions ORDER BY id").compactMap { row in
        guard case .text(let id) = row["id"] else { return nil }
        return MissionRecord(id: id) { row[$0.text] == .null ? nil : row[$0.text] }
      }
    }
  }

  @Test("a published mission can be read, changes with its next version, and is removed")
  func life() throws {
    let fixture = try ReplicaFixture.withTasks()
    let first = try record("m")
    try fixture.apply([published(first, at: 1)])
    #expect(try kept(fixture) == [first])
    var second = first
    second.version = 2
    second.title = "Other"
    let columns = [Column("version", .integer(2)), Column("title", .text("Other"))]
    try fixture.apply([
      PageMaker().change(
        2, MissionRecord.table, "m", columns, inserts: false, at: 1_700_000_000_001)
    ])
    #expect(try kept(fixture) == [second])
    #expect(try fixture.pending.isEmpty)
    try fixture.apply([
      PageMaker().deletion(3, MissionRecord.table, "m", at: 1_700_000_000_002)
    ])
    #expect(try kept(fixture).isEmpty)
  }

  @Test("an app's writes to the catalogue are never recorded, and the table cannot be tracked")
  func notCaptured() throws {
    let fixture = try ReplicaFixture.withTasks()
    try fixture.apply([published(try record("m"), at: 1)])
    #expect(throws: DatabaseError.self) {
      try fixture.run("UPDATE ferry_missions SET title = 'mine'")
    }
    try fixture.file.connection.execute(
      "UPDATE ferry_missions SET title = 'mine'; INSERT INTO ferry_missions(id) VALUES ('own')")
    #expect(try fixture.pending.isEmpty)
    #expect(throws: ReplicaError.self) { try fixture.file.track(["ferry_missions"]) }
  }

  @Test("columns of a later version of Ferry are kept, and the rest is applied")
  func laterColumns() throws {
    let fixture = try ReplicaFixture.withTasks()
    let first = try record("m")
    try fixture.apply([published(first, at: 1, [Column("zone", .text("x"))])])
    #expect(try kept(fixture) == [first])
    try fixture.reopen()
    let left = try fixture.file.kept.changes(.ofTable(MissionRecord.table), limit: 10)
    #expect(left.map { $0.change.state.columns.map(\.name) } == [["zone"]])
  }

  @Test("the digests of the catalogue equal those of its records, later columns included")
  func digests() throws {
    let fixture = try ReplicaFixture.withTasks()
    let more = [Column("zone", .text("x"))]
    let (first, second) = (try record("m"), try record("n"))
    try fixture.apply([published(first, at: 1, more), published(second, at: 2)])
    let scan = try TableScan(
      MissionRecord.table, on: fixture.file.connection, limits: .standard)
    var hasher = RecordHasher()
    var sums = DigestSums()
    for (record, more) in [(first, more), (second, [])] {
      let key = RecordKey(table: MissionRecord.table, record: Name(record.id.value))
      sums.add(
        hasher.digest(of: key, (record.columns + more).sortedByBytes()),
        to: DigestNode.leaf(of: key.record))
    }
    let found = try scan.sums { _ in }
    #expect(found.recordCount == 2)
    #expect(found == sums)
  }

  @Test("a pull from scratch removes missions that it does not contain")
  func replaced() throws {
    for code in [ProblemCode.cursorExpired, .historyLost] {
      let fixture = try ReplicaFixture.withTasks()
      try fixture.apply([
        published(try record("m"), at: 1), published(try record("n"), at: 2),
      ])
      try ReplacingPull(fixture.file).begin(Problem(code, "the server has lost it"))
      try fixture.apply([published(try record("n"), at: 2)])
      #expect(try kept(fixture).map(\.id.value) == ["n"])
      #expect(try fixture.pending.isEmpty)
    }
  }
}

import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// A device's view of the tables when it compares itself with the server.
@Suite("Reading tables for a comparison", .hangLimit)
struct TableScanTests {
  private let maker = PageMaker()

  private func scan(_ replica: ReplicaFixture) throws -> TableScan {
    try TableScan("tasks", on: replica.file.connection, limits: .standard)
  }

  /// Returns the server's sums of these changes.
  private func sums(_ changes: [Change]) -> DigestSums {
    var sums = DigestSums()
    var hasher = RecordHasher()
    for change in changes {
      guard let digest = Digest(of: change.key, change.state, with: &hasher) else { continue }
      sums.add(digest, to: DigestNode.leaf(of: change.key.record))
    }
    return sums
  }

  private func changes(_ count: Int) -> [Change] {
    (1...count).map { index -> Change in
      let title: Value = index % 7 == 0 ? .null : .text("text \(index)")
      return maker.change(
        Int64(index), "tasks", "r\(index)", [Column("title", title), Column("done", 1)])
    }
  }

  @Test("rows that were applied have the sums of the server's records")
  func sums() throws {
    let replica = try ReplicaFixture.withTasks()
    let changes = changes(300)
    try replica.apply(changes)
    let scan = try scan(replica)
    #expect(try scan.sums { _ in } == sums(changes))
    let leaf = DigestNode.leaf(of: "r1")
    let digests = try scan.digests(of: [leaf])
    #expect(digests.keys.contains(RecordKey(table: "tasks", record: "r1")))
    #expect(digests.keys.allSatisfy { DigestNode.leaf(of: $0.record) == leaf })
  }

  @Test("records that an unsent batch has changed are left out")
  func batched() throws {
    let replica = try ReplicaFixture.withTasks()
    let changes = changes(20)
    try replica.apply(changes)
    try replica.file.write { database in
      _ = try database.batch("tasks", where: "title = 'text 3'", set: ["done": 2])
      _ = try database.batchDelete("tasks", where: "title = 'text 5'")
    }
    let scan = try scan(replica)
    #expect(Set(scan.pending.map(\.record)) == ["r3", "r5"])
    #expect(
      try scan.sums { _ in } == sums(changes.filter { !["r3", "r5"].contains($0.key.record) }))
  }

  @Test("records with pending operations are left out")
  func pending() throws {
    let replica = try ReplicaFixture.withTasks()
    let changes = changes(20)
    try replica.apply(changes)
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id IN ('r3', 'r4')")
    try replica.run("DELETE FROM tasks WHERE id = 'r5'")
    try replica.run("INSERT INTO tasks VALUES ('new', 'x', 1)")
    let scan = try scan(replica)
    #expect(Set(scan.pending.map(\.record)) == ["r3", "r4", "r5", "new"])
    #expect(
      try scan.sums { _ in }
        == sums(changes.filter { !["r3", "r4", "r5"].contains($0.key.record) }))
  }

  @Test("deferred rows and columns count with their received values")
  func kept() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      "CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT, done INTEGER CHECK (done < 100))")
    try replica.file.track(["tasks"])
    var changes = changes(10)
    changes[2] = maker.change(3, "tasks", "r3", [Column("title", "x"), Column("done", 100)])
    changes[4] = maker.change(
      5, "tasks", "r5", [Column("title", "y"), Column("later", 7), Column("done", 0)])
    let pull = try replica.apply(changes)
    #expect(pull.refused == 1)
    #expect(try scan(replica).sums { _ in } == sums(changes))
    try replica.run("ALTER TABLE tasks ADD COLUMN later INTEGER")
    #expect(try scan(replica).sums { _ in } == sums(changes))
    let key = RecordKey(table: "tasks", record: "r3")
    let received = try #require(try scan(replica).received(key))
    #expect(received.contains(Column("done", 100)))
  }

  @Test("a row changed without Ferry changes the sums")
  func altered() throws {
    let replica = try ReplicaFixture.withTasks()
    let changes = changes(50)
    try replica.apply(changes)
    let other = try SQLiteConnection(path: replica.path)
    let triggers = CaptureTriggers.names(
      for: "tasks", in: FileSpaces.names(of: 1), isGuarded: false)
    for name in triggers {
      try other.execute("DROP TRIGGER \(quoted(name))")
    }
    try other.execute("UPDATE tasks SET title = 'other' WHERE id = 'r9'")
    #expect(try scan(replica).sums { _ in } != sums(changes))
  }

  @Test("defaults are read as SQLite reads them")
  func defaults() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE tasks(id TEXT PRIMARY KEY, a DEFAULT 5, b TEXT DEFAULT 'x(y)', c DEFAULT -1.5,
        d DEFAULT CURRENT_TIMESTAMP, e DEFAULT (random()), f, g DEFAULT NULL, h DEFAULT x'00')
      """)
    try replica.file.track(["tasks"])
    let rules = try scan(replica).comparison.rules.mapValues(\.defaultValue)
    #expect(rules["a"] == .constant(5))
    #expect(rules["b"] == .constant("x(y)"))
    #expect(rules["c"] == .constant(-1.5))
    #expect(rules["d"] == .varying)
    #expect(rules["e"] == .varying)
    #expect(rules["f"] == .null)
    #expect(rules["g"] == .null)
    #expect(rules["h"] == .constant(.blob([0])))
  }
}

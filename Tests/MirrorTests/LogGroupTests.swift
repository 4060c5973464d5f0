import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror
@testable import FerryPostgres

/// The changes that the reader of a group's log captures for each mirror, in a real database.
@Suite("Captured changes of a group's log", .hangLimit)
struct LogGroupTests {
  private static let relations = ["tasks", "kinds"].enumerated().map { place, name in
    PgoutputRelation(
      id: UInt32(place), schema: "public", name: name, identity: UInt8(ascii: "f"),
      columns: [
        .init(name: "id", type: 25, isKey: true), .init(name: "account", type: 25, isKey: false),
        .init(name: "title", type: 25, isKey: false),
      ])
  }

  private let connection: PostgresConnection
  private let group: MirrorGroupTables
  private let log: MirrorLog
  private let plan: MirrorPlan

  init() throws {
    connection = try PostgresConnection(url: try PostgresCluster.shared().createDatabase())
    group = try MirrorGroupTables(entering: "all", connection)
    try connection.execute(
      """
      CREATE TABLE tasks(id text PRIMARY KEY, account text, title text);
      CREATE TABLE kinds(id text PRIMARY KEY, account text, title text);
      INSERT INTO ferry_mirror.mirrors(name, space, schema) VALUES
        ('all-a', 'a', 'public'), ('all-b', 'b', 'public')
      """)
    try MirrorLog.enter(group.log, connection)
    log = try #require(try MirrorLog(group.log, connection))
    var schema = SpaceSchema.empty
    for relation in Self.relations {
      schema.tables[Name(relation.name)] = TableRules(
        definition: DeclaredTable(key: "id", columns: [DeclaredColumn("title", .text)]))
    }
    plan = try MirrorPlan(schema, adopted: ["tasks", "kinds"])
    let tables = ["tasks", "kinds"].map { name in
      LoggedTable(
        schema: "public", name: name, target: "\"public\".\"\(name)\"",
        column: name == "tasks" ? "account" : nil)
    }
    try LogMembers.enter(LoggedMirror(group.log, tables), in: group.log, connection)
    try join(1, "a")
    try join(2, "b")
  }

  private func sql(_ mirror: Int64, _ value: String) -> [MirrorSQL] {
    plan.tables.map { table in
      var table = table
      table.adoption = MirrorAdoption(
        space: table.name == "tasks" ? SpaceColumn("account", value: value) : nil)
      return MirrorSQL(table: table, schema: "public", mirror: mirror, capture: .log)
    }
  }

  private func join(_ mirror: Int64, _ value: String) throws {
    try LogMembers.enter(
      LoggedMirror(mirror, sql(mirror, value), isOfGroup: true), in: group.log, connection)
  }

  private func row(_ account: Character) -> [PgoutputValue] {
    ["1", String(account), "t"].map { .text(Array($0.utf8)[...]) }
  }

  /// Returns a change: `Ia` inserts into space a, `Uab` moves the row from space a to b, `Da` deletes
  /// it. A small letter at the beginning is of the shared table. `1` and `2` open a step of a mirror,
  /// and `.` closes it.
  private func change(_ word: Substring) throws -> ReplicatedChange {
    let isShared = word.first?.isLowercase == true
    let relation = Self.relations[isShared ? 1 : 0]
    let (from, to) = (row(word.dropFirst().first ?? "a"), row(word.last ?? "a"))
    switch word.first {
    case "I", "i": return .insert(relation, new: to)
    case "U", "u": return .update(relation, old: .row(from), new: to)
    case "D", "d": return .delete(relation, old: .row(from))
    case ".": return .message(prefix: LogMark.prefix, content: Array("\(log.secret)\nclose".utf8))
    default:
      let name = word.hasSuffix("k") ? "kinds" : "tasks"
      let function = MirrorSQL.function(of: word.hasPrefix("1") ? 1 : 2, name)
      return .message(
        prefix: LogMark.prefix, content: Array("\(log.secret)\nopen\n\(function)".utf8))
    }
  }

  /// Stores transactions, divided by semicolons. Returns the mirrors with something to do.
  private func store(_ story: String, _ writer: inout LogWriter) throws -> LogWriter.Captured {
    for (place, text) in story.split(separator: ";").enumerated() {
      try writer.add(
        ReplicatedPart(
          xid: 700 + UInt32(place), commit: .zero, time: 0,
          changes: try text.split(separator: " ").map(change), end: .zero))
    }
    return try writer.commit(.zero)
  }

  private func captured() throws -> String {
    try connection.query(
      .once("SELECT kind::text || mirror FROM ferry_mirror.captured ORDER BY id, mirror")
    ).map { try $0.text(0) }.joined(separator: " ")
  }

  @Test(
    "a row is captured for the mirror of the space column, and a shared one for all",
    arguments: [
      ("Ia Ib Da", "I1 I2 D1"), ("Uaa", ""), ("Uab", "D1 I2"), ("Uax", "D1"), ("Uxb", "I2"),
      ("Ix Uxy Dx", ""), ("ia", "I1 I2"), ("da; Ib", "D1 D2 I2"),
      // A step's rows are left out for the mirror of the step alone.
      ("1 Ia .", ""), ("1 Ia . Ia", "I1"), ("1 Uab .", "I2"), ("2 Uab .", "D1"), ("2 Ia .", "I1"),
      ("1k ia .", "I2"), ("1k Ia .", "I1"), ("1k ia . ia", "I2 I1 I2"),
    ])
  func spaces(story: String, expected: String) throws {
    var writer = LogWriter(connection, log)
    _ = try store(story, &writer)
    #expect(try captured() == expected)
  }

  @Test("a mirror that joins or leaves counts from the next transaction of the reader")
  func members() throws {
    var writer = LogWriter(connection, log)
    #expect(try store("Ic", &writer) == .nothing)
    #expect(try group.wanted(connection).map(\.value) == ["c"])
    try connection.execute(
      "INSERT INTO ferry_mirror.mirrors(name, space, schema) VALUES ('all-c', 'c', 'public')")
    try join(3, "c")
    #expect(try store("Ic", &writer) == .mirrors([3]))
    try connection.transaction { connection in
      try LogMembers.exclude(reader: group.log, connection)
      try LogMembers.remove(2, connection)
    }
    #expect(try store("Ib Ia", &writer) == .mirrors([1]))
    #expect(try captured() == "I3 I1")
    #expect(try group.wanted(connection).map(\.value) == ["b", "c"])
  }

  @Test("the schemas of two spaces may differ")
  func definitions() throws {
    var other = sql(3, "c")
    for place in other.indices { other[place].table.columns = [] }
    try LogMembers.enter(
      LoggedMirror(3, other, isOfGroup: true), in: group.log, connection)
    var writer = LogWriter(connection, log)
    _ = try store("Uac ia", &writer)
    #expect(try captured() == "D1 I3 I1 I2 I3")
    #expect(
      try connection.query(
        .once("SELECT names::text FROM ferry_mirror.captured WHERE mirror = 3")
      ).map { try $0.text(0) } == ["{}", "{}"])
  }

  @Test("a gap concerns all mirrors, and each of them compares for itself")
  func gaps() throws {
    var writer = LogWriter(connection, log)
    try writer.add(
      ReplicatedPart(
        xid: 700, commit: .zero, time: 0, changes: [.truncate(Self.relations[1])], end: .zero))
    #expect(try writer.commit(.zero) == .all)
    let one = try #require(try MirrorLog(1, connection))
    #expect(one.compares && one.isOfGroup && !one.isOwn)
    try one.recordComparison(connection)
    #expect(try MirrorLog(1, connection)?.compares == false)
    #expect(try MirrorLog(2, connection)?.compares == true)
    #expect(try MirrorLog(group.log, connection)?.compares == true)
    // A later mirror begins with all rows.
    try join(3, "c")
    #expect(try MirrorLog(3, connection)?.compares == false)
  }

  @Test("a changed entry waits for the reader, so no later version is read before it")
  func order() throws {
    let locks = PostgresStatement.once(
      """
      SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'
        AND objid = \(group.number) AND granted
      """)
    try connection.transaction { connection in
      try LogMembers.enter(
        LoggedMirror(1, sql(1, "a"), isOfGroup: true), in: group.log, connection)
      #expect(try connection.query(locks).first?.int8(0) == 1)
    }
  }

  @Test(
    "a space column that is gone or has another type stops its table, and the rest goes on",
    arguments: [
      "RENAME COLUMN account TO space", "ALTER COLUMN account TYPE int USING 1",
      "RENAME TO others",
    ])
  func changedColumn(change: String) throws {
    try connection.execute("ALTER TABLE tasks \(change)")
    var writer = LogWriter(connection, log)
    #expect(try store("Ix Ib; ia", &writer) == .mirrors([1, 2]))
    #expect(try group.stops(connection).map(\.table) == ["tasks"])
    for mirror in [1, 2] {
      #expect(
        try MirrorLedger(number: Int64(mirror)).stops(connection).map(\.table) == ["tasks"])
    }
    #expect(try captured() == "I1 I2")
    _ = try store("Iy; ia", &writer)
    #expect(try captured() == "I1 I2 I1 I2")
  }

  @Test("a new column between two transactions stops nothing")
  func addedColumn() throws {
    var writer = LogWriter(connection, log)
    _ = try store("Ix", &writer)
    try connection.execute("ALTER TABLE tasks ADD COLUMN more text")
    _ = try store("Iy Ia", &writer)
    #expect(try group.stops(connection) == [])
    #expect(try group.wanted(connection).map(\.value) == ["x", "y"])
    #expect(try captured() == "I1")
  }

  @Test("a former reader and the next one do not capture a transaction twice")
  func handOver() throws {
    let end = try #require(PostgresLSN("0/10"))
    var (former, next) = (LogWriter(connection, log), LogWriter(connection, log))
    let part = ReplicatedPart(
      xid: 700, commit: .zero, time: 0, changes: [try change("Ia")], end: end)
    try former.add(part)
    _ = try former.commit(end)
    try next.add(part)
    #expect(throws: MirrorFault.self) { try next.commit(end) }
    try connection.execute("ROLLBACK")
    #expect(try captured() == "I1")
    let present = try #require(try MirrorLog(group.log, connection))
    #expect(present.stored == end)
  }

  @Test("a mark of a process without the slot makes the reader store the position, a beat does not")
  func stored() throws {
    var writer = LogWriter(connection, log)
    for (word, isDirty) in [("beat", false), ("store", true)] {
      let content = Array("\(log.secret)\n\(word)".utf8)
      try writer.add(
        ReplicatedPart(
          xid: 700, commit: .zero, time: 0,
          changes: [.message(prefix: LogMark.prefix, content: content)], end: .zero))
      #expect(writer.isDirty == isDirty, "\(word)")
    }
  }

  @Test("waits end with the position that they need")
  func waits() throws {
    let (first, second) = (LogWait(), LogWait())
    var waits = LogWaits()
    waits.add([first], through: try #require(PostgresLSN("0/10")))
    waits.add([second], through: try #require(PostgresLSN("0/20")))
    #expect(waits.remove(through: try #require(PostgresLSN("0/F"))).isEmpty)
    #expect(waits.remove(through: try #require(PostgresLSN("0/10"))).map { $0 === first } == [true])
    #expect(waits.all.map { $0 === second } == [true] && !waits.isEmpty)
    #expect(waits.remove(through: try #require(PostgresLSN("1/0"))).count == 1 && waits.isEmpty)
  }

  @Test("a task waits without a thread, and a wait may have ended before")
  func tasks() async {
    let wait = LogWait()
    #expect(await !wait.hasEnded(within: .zero))
    let task = Task { await wait.hasEnded(within: .seconds(600)) }
    wait.end()
    #expect(await task.value)
    #expect(await wait.hasEnded(within: .zero))
    #expect(wait.ends(within: .zero))
  }
}

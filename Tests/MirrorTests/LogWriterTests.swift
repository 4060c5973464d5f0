import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror
@testable import FerryPostgres

/// The changes that the reader of the log captures beside the writes of steps, in a real database.
@Suite("Captured changes of the log", .hangLimit)
struct LogWriterTests {
  private static let relation = PgoutputRelation(
    id: 1, schema: "public", name: "tasks", identity: UInt8(ascii: "f"),
    columns: [
      .init(name: "id", type: 25, isKey: true), .init(name: "title", type: 25, isKey: false),
    ])

  private let connection: PostgresConnection
  private let log: MirrorLog
  private let sql: MirrorSQL

  init() throws {
    connection = try PostgresConnection(url: try PostgresCluster.shared().createDatabase())
    try connection.execute(MirrorLedger.tables)
    try connection.execute(
      """
      INSERT INTO ferry_mirror.mirrors(name, space, schema) VALUES ('crm', 'demo', 'public');
      CREATE TABLE tasks(id text PRIMARY KEY, title text)
      """)
    try MirrorLog.enter(1, connection)
    log = try #require(try MirrorLog(1, connection))
    var schema = SpaceSchema.empty
    schema.tables["tasks"] = TableRules(
      definition: DeclaredTable(key: "id", columns: [DeclaredColumn("title", .text)]))
    sql = MirrorSQL(
      table: try MirrorPlan(schema).tables[0], schema: "public", mirror: 1, capture: .log)
  }

  private static func row(_ key: String, _ title: String) -> [PgoutputValue] {
    [key, title].map { .text(Array($0.utf8)[...]) }
  }

  /// Returns a change: `I1`, `U1` and `D1` are of the row 1, `open`, `open other` and `close` are
  /// marks, and so are `gone`, `over` and `made` with keys.
  private func change(_ word: Substring) -> ReplicatedChange {
    let key = String(word.dropFirst())
    let (old, new) = (Self.row(key, "old"), Self.row(key, "new"))
    switch word {
    case _ where word.hasPrefix("I"): return .insert(Self.relation, new: new)
    case _ where word.hasPrefix("U"): return .update(Self.relation, old: .row(old), new: new)
    case _ where word.hasPrefix("D"): return .delete(Self.relation, old: .row(old))
    default: break
    }
    let text =
      switch word {
      case "open": "open\n\(sql.function)"
      case "other": "open\nferry_mirror.capture_1_other"
      case "close": "close"
      default: "\(word.prefix(4))\n\(sql.function)\n[[\"\(word.dropFirst(4))\"]]"
      }
    return .message(prefix: LogMark.prefix, content: Array("\(log.secret)\n\(text)".utf8))
  }

  /// Returns the captured writes of transactions, divided by semicolons, in order.
  private func captured(_ story: String, merges: Bool = false) throws -> String {
    var writer = LogWriter(connection, log)
    var sql = sql
    if merges { sql.table.columns[0].policy = .textMerge }
    writer.use([sql])
    for (place, text) in story.split(separator: ";").enumerated() {
      let changes = text.split(separator: " ").map(change)
      try writer.add(
        ReplicatedPart(
          xid: 700 + UInt32(place), commit: .zero, time: 0, changes: changes, end: .zero))
    }
    _ = try writer.commit(.zero)
    return try connection.query(
      .once("SELECT kind::text || key[1] FROM ferry_mirror.captured ORDER BY id")
    ).map { try $0.text(0) }.joined(separator: " ")
  }

  /// Writes a row of a relation of the log. Returns the captured writes, and the stops.
  private func captured(_ relation: PgoutputRelation) throws -> (String, [MirrorStop]) {
    var writer = LogWriter(connection, log)
    writer.use([sql])
    try writer.add(
      ReplicatedPart(
        xid: 700, commit: .zero, time: 0,
        changes: [.insert(relation, new: Self.row("1", "new"))], end: .zero))
    _ = try writer.commit(.zero)
    let writes = try connection.query(
      .once("SELECT kind::text || key[1] FROM ferry_mirror.captured ORDER BY id")
    ).map { try $0.text(0) }.joined(separator: " ")
    return (writes, try MirrorLedger(number: 1).stops(connection))
  }

  @Test("a write under other names is captured if the table has its name again, and else a stop")
  func otherNames() throws {
    try connection.execute(
      """
      INSERT INTO ferry_mirror.recorded(mirror, tab, target, function, triggers, columns, shape)
      SELECT 1, 'tasks', 'public.tasks', '', 0, '{id,title}',
        \(TableShape.sql("'public.tasks'::regclass::oid"));
      CREATE PUBLICATION ferry_mirror_1 FOR TABLE tasks; ALTER TABLE tasks REPLICA IDENTITY FULL
      """)
    let found = try connection.query(.once("SELECT 'public.tasks'::regclass::oid::bigint"))
    var relation = Self.relation
    relation.id = UInt32(try found.first?.int8(0) ?? 0)
    relation.name = "jobs"
    #expect(try captured(relation) == ("I1", []))
    relation.columns[1].name = "name"
    let (writes, stops) = try captured(relation)
    #expect(writes == "I1")
    #expect(stops.map(\.table) == ["tasks"] && stops.map(\.isAboutDefinition) == [true])
    #expect(try MirrorLedger(number: 1).otherShapes(connection).map(\.table) == ["tasks"])
    try connection.execute("DELETE FROM ferry_mirror.stops; ALTER TABLE tasks RENAME TO jobs")
    let gone = try captured(relation)
    #expect(gone.0 == "I1" && gone.1.map(\.table) == ["tasks"])
    #expect(gone.1.map(\.isAboutDefinition) == [true])
    #expect(try MirrorLedger(number: 1).otherShapes(connection).isEmpty)
  }

  @Test(
    "the rows between two marks of a table are the step's, and all others are captured",
    arguments: [
      ("U1 I2 D3", "U1 I2 D3"), ("open U1 I2 D3 close", ""), ("open U1 close U2 U1", "U2 U1"),
      ("open U1 close U2 open U3 close D4", "U2 D4"), ("other U1 close", "U1"),
      // A mark without its end concerns no other transaction.
      ("open U1; U2", "U2"),
      // The step names its rows by their keys, beside triggers before them.
      ("U1 U2 gone1", "U2"), ("U1 gone1 U1", "U1"), ("D1 I1 U1 gone1 D2", "D2"),
      // It writes a row that an effect has changed.
      ("open U1 close U2 over2 open U2 close", ""), ("U2; U3 over2", "U2 U3"), ("U2; over2", "U2"),
      // It has captured a row as a whole.
      ("U1 U2 made1", "U2"), ("D1 made1", "D1"), ("U1 made1 U1", "U1"),
    ])
  func marks(story: String, expected: String) throws {
    #expect(try captured(story) == expected)
  }

  @Test(
    "the amounts of an effect stay when the step overwrites the row, whatever it captures of it",
    arguments: [
      ("U1 over1", "E1"), ("U1 U2 U1 over1 U1", "E1 U2 E1 U1"), ("D1 I1 U1 over1", "E1"),
      ("U1 over1 U1 gone1", "E1"), ("U1 over1 U1 made1", "E1"), ("U1 over1 over1", "E1"),
    ])
  func amounts(story: String, expected: String) throws {
    #expect(try captured(story, merges: true) == expected)
  }
}

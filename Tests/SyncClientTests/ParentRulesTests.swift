import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("The rules of foreign keys", .hangLimit)
struct ParentRulesTests {
  private static func link(
    _ child: Name, _ parent: Name, _ action: ForeignKey.Action, _ declared: ClashRule? = nil
  ) -> ForeignKey {
    let table = TableSchema(
      name: child, keys: [KeyColumn(local: "id", type: "TEXT")], columns: [])
    return ForeignKey(
      child: table, parent: parent, from: ["p"], to: ["id"], onDelete: action, declared: declared)
  }

  @Test(
    "the rule follows from ON DELETE, unless the schema declares one",
    arguments: [
      (.cascade, nil, .childGoes), (.restrict, nil, .parentReturns), (.none, nil, .parentReturns),
      (.setNull, nil, nil), (.setDefault, nil, nil), (.setNull, .childGoes, .childGoes),
      (.cascade, .ask, .ask),
    ] as [(ForeignKey.Action, ClashRule?, ClashRule?)])
  func rule(action: ForeignKey.Action, declared: ClashRule?, rule: ClashRule?) {
    #expect(Self.link("c", "p", action, declared).rule == rule)
  }

  @Test("a row is held by its children, and by those of rows that go with it")
  func holding() {
    let rules = ParentRules([
      Self.link("b", "A", .cascade), Self.link("c", "b", .none), Self.link("d", "a", .setNull),
    ])
    #expect(
      rules.holding("a", alias: "p") == """
        EXISTS (SELECT 1 FROM "b" AS p_1 WHERE p."id" = p_1."p" AND (EXISTS (SELECT 1 FROM "c" AS \
        p_1_2 WHERE p_1."id" = p_1_2."p")))
        """)
    let staying = rules.holding("b", alias: "p", .init(isStaying: true))
    #expect(
      staying?.contains("NOT EXISTS (SELECT 1 FROM temp.ferry_leaving WHERE tbl = 'c'") == true)
    #expect(rules.holding("c", alias: "p") == nil)
    #expect(rules.holding("a", alias: "p", .init(isAsking: true)) == nil)
    #expect(ParentRules([Self.link("b", "a", .cascade)]).holding("a", alias: "p") == nil)
  }

  @Test("all rows that refer to a row count, whatever their foreign key does")
  func referring() {
    let rules = ParentRules(
      [Self.link("b", "A", .cascade), Self.link("c", "b", .none), Self.link("a", "a", .setNull)],
      others: [Self.link("x", "a", .setDefault)])
    #expect(
      rules.referring("a", alias: "p") == """
        EXISTS (SELECT 1 FROM "b" AS p_1 WHERE p."id" = p_1."p") OR \
        EXISTS (SELECT 1 FROM "a" AS p_1 WHERE p."id" = p_1."p" AND (p_1."id" = p."id") IS NOT TRUE) OR \
        EXISTS (SELECT 1 FROM "x" AS p_1 WHERE p."id" = p_1."p")
        """)
    #expect(rules.referring("c", alias: "p") == nil)
    #expect(rules.holding("a", alias: "p")?.contains("\"x\"") != true)
  }

  @Test("a row that refers to itself does not hold itself, and a circle ends")
  func circles() {
    let own = ParentRules([Self.link("a", "a", .none)])
    #expect(own.holding("a", alias: "p")?.contains(#"AND (p_1."id" = p."id") IS NOT TRUE"#) == true)
    let circle = ParentRules([Self.link("b", "a", .cascade), Self.link("a", "b", .cascade)])
    #expect(circle.holding("a", alias: "p") == nil)
    let kept = ParentRules([
      Self.link("b", "a", .none, .childGoes), Self.link("a", "b", .none, .childGoes),
    ])
    #expect(kept.holding("a", alias: "p") != nil)
  }

  @Test(
    "a row is held by those of rows that go with it over many steps, unless a row between leaves")
  func chains() throws {
    let rules = ParentRules([
      Self.link("b", "a", .cascade), Self.link("a", "b", .cascade), Self.link("c", "b", .restrict),
    ])
    let fixture = try ReplicaFixture()
    try fixture.run(
      """
      CREATE TABLE a(id TEXT PRIMARY KEY, p TEXT);
      CREATE TABLE b(id TEXT PRIMARY KEY, p TEXT);
      CREATE TABLE c(id TEXT PRIMARY KEY, p TEXT);
      INSERT INTO a VALUES ('a1', NULL), ('a2', 'b1'), ('a3', NULL), ('circle', 'circle');
      INSERT INTO b VALUES ('b1', 'a1'), ('b2', 'a2'), ('b3', 'a3'), ('circle', 'circle');
      INSERT INTO c VALUES ('c', 'b2')
      """)
    try fixture.file.connection.execute("CREATE TEMP TABLE ferry_leaving(tbl, record)")
    func held(_ choice: ParentRules.Choice) throws -> [[Value]] {
      let condition = try #require(rules.holding("a", alias: "p", choice))
      return try fixture.rows("SELECT id FROM a AS p WHERE \(condition) ORDER BY id")
    }
    #expect(try held(.init()) == [["a1"], ["a2"]])
    #expect(try held(.init(isStaying: true)) == [["a1"], ["a2"]])
    try fixture.file.connection.execute("INSERT INTO ferry_leaving VALUES ('b', 'b1')")
    #expect(try held(.init(isStaying: true)) == [["a2"]])
    #expect(rules.holding("a", alias: "p", .init(isAsking: true)) == nil)
  }

  @Test(
    "SQLite can read the condition of a long chain of tables, with and without a circle at its end",
    arguments: [0, 14])
  func longChains(first: Int) throws {
    let fixture = try ReplicaFixture()
    let tables = 15
    for table in 0..<tables {
      try fixture.run(
        """
        CREATE TABLE t\(table)(id TEXT PRIMARY KEY, p TEXT);
        INSERT INTO t\(table) VALUES ('a', 'a'), ('b', 'b')
        """)
    }
    try fixture.run(
      "CREATE TABLE kept(id TEXT PRIMARY KEY, p TEXT); INSERT INTO kept VALUES ('k', 'a')")
    var links = (1..<tables).map { Self.link(Name("t\($0)"), Name("t\($0 - 1)"), .cascade) }
    links.append(Self.link(Name("t\(first)"), Name("t\(tables - 1)"), .cascade))
    links.append(Self.link("kept", Name("t\(tables - 1)"), .restrict))
    let condition = try #require(ParentRules(links).holding("t0", alias: "p"))
    #expect(try fixture.rows("SELECT id FROM t0 AS p WHERE \(condition)") == [["a"]])
  }

  @Test(
    "a row with NULL in a text key refers to another row, and a row that refers to itself to none")
  func nullKeys() throws {
    let fixture = try ReplicaFixture()
    try fixture.run(
      """
      CREATE TABLE a(id TEXT PRIMARY KEY, p TEXT);
      INSERT INTO a VALUES ('parent', NULL), (NULL, 'parent'), ('alone', 'alone')
      """)
    let referring = try #require(
      ParentRules([Self.link("a", "a", .none)]).referring("a", alias: "p"))
    #expect(try fixture.rows("SELECT id FROM a AS p WHERE \(referring)") == [["parent"]])
  }

  @Test("rows that SQLite keeps are removed from the end of the chain")
  func removals() {
    let rules = ParentRules([
      Self.link("b", "a", .restrict, .childGoes), Self.link("c", "b", .none, .childGoes),
      Self.link("d", "a", .cascade),
    ])
    let of = #"EXISTS (SELECT 1 FROM "a" WHERE "a"."id" = "b"."p" AND x)"#
    #expect(
      rules.removals(of: "a", where: "x") == [
        #"DELETE FROM "c" WHERE EXISTS (SELECT 1 FROM "b" WHERE "b"."id" = "c"."p" AND \#(of))"#,
        #"DELETE FROM "b" WHERE \#(of)"#,
      ])
  }
}

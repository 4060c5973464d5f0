import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

extension FilledListTests {
  /// A schema and a list, for both ways to apply it.
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let schema: [String]
    var identity: KeyIdentity?
    /// The tables that only send.
    var uploads: Set<String> = []
    let changes: [Change]
    /// Whether copies are made.
    var isFilled = true

    /// The state after the list.
    struct State: Equatable {
      var rows: [String: [[Value]]] = [:]
      var refused = 0
      var schema: [String] = []
    }

    func run(fills: Bool) throws -> (state: State, slices: Int) {
      let replica = try ReplicaFixture()
      for sql in schema { try replica.run(sql) }
      let tables = try replica.userTables()
      for table in tables {
        try replica.file.track(
          [Name(table)],
          direction: uploads.contains(table) ? .uploadOnly(automatic: true) : .twoWay,
          identity: identity)
      }
      var slices = 0
      if fills { replica.fill { slices += 1 } }
      var state = State()
      state.refused = try replica.pull(changes, pages: 3).refused
      for table in try tables + replica.ledgerTables() {
        state.rows[table] = try replica.rows("SELECT * FROM \(table) ORDER BY 1, 2")
      }
      state.schema = try replica.file.connection.rows(
        "SELECT type || name || tbl_name || ifnull(sql, '') FROM sqlite_schema ORDER BY 1"
      ) { $0.text(0) }
      // Both files record later writes.
      for table in tables { try replica.run("DELETE FROM \(table)") }
      state.rows["pending"] = try replica.pending.map {
        [.text($0.key.table.text), .text($0.key.record.text), .text($0.kind.rawValue)]
      }.sorted { "\($0)" < "\($1)" }
      try replica.checkFile()
      return (state, slices)
    }
  }
}

extension ReplicaFixture {
  fileprivate func userTables() throws -> [String] {
    try file.connection.rows(
      """
      SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'ferry%'
        AND name NOT LIKE 'sqlite%' AND name NOT IN ('seen', 'visit') ORDER BY name
      """
    ) { $0.text(0) }
  }

  /// Returns Ferry's own tables, and AUTOINCREMENT's. The places of objects in the schema may differ.
  fileprivate func ledgerTables() throws -> [String] {
    try file.connection.rows(
      """
      SELECT name FROM sqlite_schema WHERE type = 'table' AND (name LIKE 'ferry%' OR name = 'sqlite_sequence')
        AND name NOT IN ('ferry_checked', 'ferry_tables') ORDER BY name
      """
    ) { $0.text(0) }
  }
}

extension FilledListTests.Case {
  private static let maker = PageMaker()

  private static func change(
    _ sequence: SequenceNumber, _ table: Name, _ record: Name, _ columns: [Column] = []
  ) -> Change { maker.change(sequence, table, record, columns) }

  /// Some rows of a table `t` with the columns a and b.
  private static let plain: [Change] = [
    change(1, "t", "k2", [Column("a", 1), Column("b", "x")]),
    change(2, "t", "k1", [Column("a", 2), Column("b", "X")]),
    change(
      3, "t", "k3", [Column("a", nil), Column("b", .text(String(repeating: "y", count: 9_000)))]),
    change(4, "t", "k0", [Column("a", 2.5), Column("b", 7)]),
    change(5, "t", "k4", [Column("a", 3)]),
    maker.change(6, "t", "k1", [Column("a", 9)], inserts: true),
    maker.deletion(7, "t", "k2"),
    maker.deletion(8, "t", "never"),
  ]

  static let all: [Self] = shapes + constraints + references + left + atOnce

  private static let shapes = [
    "CREATE TABLE t(id TEXT PRIMARY KEY, a, b DEFAULT 'd')",
    "CREATE TABLE t(id TEXT PRIMARY KEY, a REAL, b TEXT COLLATE NOCASE) WITHOUT ROWID",
    "CREATE TABLE t(a ANY, b ANY, id TEXT NOT NULL PRIMARY KEY) STRICT",
    """
    CREATE TABLE t(id TEXT PRIMARY KEY, a, b, c AS (a || b) STORED, d AS (a) VIRTUAL,
      CHECK (a IS NULL OR a < 100))
    """,
    #"CREATE TABLE "t" /* t */ (id TEXT PRIMARY KEY, a INTEGER, b) -- REFERENCES t"#,
    "CREATE TABLE t(id TEXT PRIMARY KEY, a, b, CHECK (t.a IS NULL OR [T] . a < 2.75))",
    "CREATE TABLE t(id TEXT PRIMARY KEY, a, b, c AS (a || b) VIRTUAL UNIQUE)",
  ].map { Self(testDescription: $0, schema: [$0], changes: plain) }

  private static let constraints = [
    Self(
      testDescription: "indexes",
      schema: [
        "CREATE TABLE t(id TEXT PRIMARY KEY, a, b UNIQUE)", "CREATE INDEX i ON t(a DESC, b)",
        "CREATE UNIQUE INDEX u ON t(a) WHERE a > 2", "CREATE INDEX e ON t(lower(b))",
        "CREATE INDEX IF NOT EXISTS main.q ON t(lower(b) COLLATE NOCASE) WHERE t.a > 1",
      ], changes: plain),
    Self(
      testDescription: "a view with a trigger, and another table that refers to the rows",
      schema: [
        "CREATE TABLE t(id TEXT PRIMARY KEY, a, b)", "CREATE VIEW v AS SELECT id, a FROM t",
        """
        CREATE TRIGGER vi INSTEAD OF INSERT ON v BEGIN INSERT INTO t(id, a) VALUES (NEW.id, NEW.a);
        END
        """,
        "CREATE TABLE visit(n INTEGER PRIMARY KEY, t TEXT REFERENCES t(id) ON DELETE SET NULL)",
        "CREATE TRIGGER own AFTER INSERT ON visit BEGIN UPDATE t SET a = 1 WHERE id = NEW.t; END",
      ], changes: plain),
    Self(
      testDescription: "values that move between rows",
      schema: ["CREATE TABLE t(id TEXT PRIMARY KEY, a, b UNIQUE)"],
      changes: [
        change(1, "t", "one", [Column("b", "x")]), change(2, "t", "two", [Column("b", "x")]),
        change(3, "t", "three", [Column("b", "x")]), change(4, "t", "one", [Column("b", "y")]),
        change(5, "t", "two", [Column("b", "z"), Column("a", 1)]),
      ]),
    Self(
      testDescription: "rows that the schema rejects",
      schema: ["CREATE TABLE t(id TEXT PRIMARY KEY, a CHECK (a < 5), b NOT NULL)"],
      changes: [
        change(1, "t", "good", [Column("a", 1), Column("b", 1)]),
        change(2, "t", "large", [Column("a", 7), Column("b", 1)]),
        change(3, "t", "null", [Column("a", 1), Column("b", nil)]),
        change(4, "t", "last", [Column("a", 2), Column("b", 1)]),
      ]),
    Self(
      testDescription: "integers, texts and two columns as keys",
      schema: [
        "CREATE TABLE n(id INTEGER PRIMARY KEY, a)",
        "CREATE TABLE p(x TEXT, y INTEGER, a, PRIMARY KEY(x, y))",
      ], identity: .value,
      changes: [
        change(1, "n", "5", [Column("a", 1)]), change(2, "n", "-3", [Column("a", 2)]),
        change(3, "n", "no number", [Column("a", 2)]),
        change(4, "p", #"["x",1]"#, [Column("a", 2)]), change(5, "n", "5", [Column("a", 3)]),
      ]),
  ]

  private static let family = [
    "CREATE TABLE list(id TEXT PRIMARY KEY, up TEXT REFERENCES list(id), a)",
    """
    CREATE TABLE task(id TEXT PRIMARY KEY, list TEXT REFERENCES list(id) ON DELETE CASCADE, a)
    """,
  ]

  private static let references = [
    Self(
      testDescription: "children before their parents", schema: family,
      changes: [
        change(1, "task", "t1", [Column("list", "l1")]),
        change(2, "list", "l2", [Column("up", "l1")]), change(3, "list", "l1"),
        change(4, "task", "t2", [Column("list", nil)]),
        change(5, "list", "l3", [Column("up", "l3")]),
      ]),
    Self(
      testDescription: "children without a parent", schema: family,
      changes: [
        change(1, "task", "t1", [Column("list", "absent")]),
        change(2, "list", "l2", [Column("up", "absent")]), change(3, "list", "l1"),
        change(4, "task", "t2", [Column("list", "l1")]),
      ]),
    Self(
      testDescription: "a parent that a later page deletes", schema: family,
      changes: [
        change(1, "list", "l1"), change(2, "task", "t1", [Column("list", "l1")]),
        change(3, "list", "l2"), change(4, "task", "t2", [Column("list", "l2")]),
        maker.deletion(5, "list", "l1"),
      ]),
    Self(
      testDescription: "a parent that gets an unknown column and is deleted by later pages",
      schema: family,
      changes: [
        change(1, "list", "l1"), change(2, "task", "t1", [Column("list", "l1")]),
        change(3, "list", "l2"), change(4, "task", "t2", [Column("list", "l2")]),
        change(5, "list", "l1", [Column("later", 1)]), maker.deletion(6, "list", "l1"),
      ]),
    Self(
      testDescription: "keys of two columns, and of a unique one",
      schema: [
        "CREATE TABLE place(x TEXT, y INTEGER, code TEXT UNIQUE COLLATE NOCASE, PRIMARY KEY(x, y))",
        """
        CREATE TABLE stay(id TEXT, n INTEGER, x TEXT, y TEXT,
          code TEXT REFERENCES place(code) ON DELETE CASCADE, PRIMARY KEY(id, n),
          FOREIGN KEY(x, y) REFERENCES place(x, y) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED)
        """,
        "CREATE TABLE long(x TEXT, n INTEGER UNIQUE REFERENCES long(n), PRIMARY KEY(x, n)) WITHOUT ROWID",
      ], identity: .value,
      changes: [
        change(1, "stay", #"["s",1]"#, [Column("x", "a"), Column("y", "1")]),
        change(
          2, "stay", #"["s",2]"#, [Column("x", "a"), Column("y", "1"), Column("code", "CODE")]),
        change(3, "stay", #"["s",3]"#, [Column("x", "a"), Column("y", nil), Column("code", nil)]),
        change(4, "place", #"["a",1]"#, [Column("code", "code")]),
        change(5, "place", #"["a",2]"#, [Column("code", "Code")]),
        change(6, "long", #"["a",1]"#), change(7, "long", #"["b",2]"#),
      ]),
  ]

  private static let left = [
    Self(
      testDescription: "unknown tables and columns, and parts",
      schema: ["CREATE TABLE t(id TEXT PRIMARY KEY, a, b)"],
      changes: plain + [
        change(9, "other", "o", [Column("x", 1)]),
        change(10, "t", "k9", [Column("a", 1), Column("later", 2)]),
        change(11, "t", "k9", [Column("a", 2)]),
        maker.change(12, "t", "part", [Column("a", 2)], inserts: false),
      ])
  ]

  private static let atOnce = [
    Self(
      testDescription: "tables that only send",
      schema: [
        "CREATE TABLE sent(id TEXT PRIMARY KEY, a)", "CREATE TABLE t(id TEXT PRIMARY KEY, a, b)",
      ],
      uploads: ["sent"], changes: plain + [change(9, "sent", "s", [Column("a", 1)])]),
    Self(
      testDescription: "only tables that send",
      schema: ["CREATE TABLE t(id TEXT PRIMARY KEY, a, b)"], uploads: ["t"], changes: plain,
      isFilled: false),
    Self(
      testDescription: "a sequence of numbers",
      schema: ["CREATE TABLE t(n INTEGER PRIMARY KEY AUTOINCREMENT, a, b)"], identity: .value,
      changes: [
        change(1, "t", "7", [Column("a", 1)]), change(2, "t", "3", [Column("a", 1)]),
        maker.deletion(3, "t", "7"),
      ], isFilled: false),
    Self(
      testDescription: "mapped keys",
      schema: ["CREATE TABLE t(n INTEGER PRIMARY KEY, a, b)"], identity: .mapped,
      changes: plain, isFilled: false),
    Self(
      testDescription: "a trigger of the user",
      schema: [
        "CREATE TABLE t(id TEXT PRIMARY KEY, a, b)", "CREATE TABLE seen(id TEXT)",
        "CREATE TRIGGER own AFTER INSERT ON t BEGIN INSERT INTO seen VALUES (NEW.id); END",
      ], changes: plain, isFilled: false),
    Self(
      testDescription: "a definition that replaces rows",
      schema: ["CREATE TABLE t(id TEXT PRIMARY KEY, a, b UNIQUE ON CONFLICT REPLACE)"],
      changes: plain, isFilled: false),
    Self(
      testDescription: "a parent that is not tracked with this list",
      schema: [
        "CREATE TABLE seen(id TEXT PRIMARY KEY)",
        "CREATE TABLE t(id TEXT PRIMARY KEY, a REFERENCES seen(id), b)",
      ], changes: [change(1, "t", "x", [Column("b", 1)])], isFilled: false),
  ]
}

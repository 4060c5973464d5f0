import FerryLaboratory
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryPersistence

/// Which commits run a live query again.
@Suite("Live queries and rows", .hangLimit)
struct LiveRowTests {
  /// Counts the runs of a query.
  private final class Runs: Sendable {
    private let number = Mutex(0)
    var count: Int { number.withLock { $0 } }
    func add() { number.withLock { $0 += 1 } }
  }

  private static func database(_ directory: TemporaryDirectory) async throws -> LocalDatabase {
    let database = try await LocalDatabase.open(directory.file("some.db").path)
    try await database.write { database in
      try Note.table.insert(
        contentsOf: [
          Note(id: "a", title: "A", done: false, list: "l1"),
          Note(id: "b", title: "B", done: false, list: "l2"),
        ], in: database)
    }
    return database
  }

  private static let queries: [@Sendable (Database) throws -> String] = [
    { try Note.find("a", in: $0)?.title ?? "none" },
    { try Note.all.where(Field("id") == "a").fetch($0).first?.title ?? "none" },
    { try Note.all.where(Field("list") == "l1").limit(3).fetch($0).first?.title ?? "none" },
    { try Note.all.where(Field("id") < "b").records(as: Heading.self).first($0)?.title ?? "none" },
    { try "\(Note.all.where(Field("title").in(["A", "last"])).count($0))" },
  ]

  @Test(
    "a query of some rows does not run again when other rows change", arguments: queries.indices)
  func otherRows(_ place: Int) async throws {
    let query = Self.queries[place]
    let directory = try TemporaryDirectory()
    let database = try await Self.database(directory)
    let (runs, all) = (Runs(), Runs())
    // Not Equatable, so each run has a result.
    struct Result: Sendable { let text: String }
    var results = database.observe { database in
      runs.add()
      return Result(text: try query(database))
    }.makeAsyncIterator()
    var counts = database.observe { database in
      all.add()
      return Result(text: "\(try database.query("SELECT title FROM notes WHERE id = 'b'"))")
    }.makeAsyncIterator()
    _ = try await results.next()
    _ = try await counts.next()
    for number in 1...20 {
      try await database.write { database in
        try Note(id: "b", title: "n\(number)", list: "l2").upsert(in: database)
        try Note.table.insert(Note(id: "x\(number)", title: "X", list: "l3"), in: database)
        try database.execute("DELETE FROM notes WHERE id = 'x\(number - 1)'")
      }
      _ = try await counts.next()
    }
    try await database.write { _ = try Note.table.delete(key: "a", in: $0) }
    _ = try await results.next()
    #expect(runs.count == 2)
    #expect(all.count > 2)
    await database.close()
  }

  @Test("a query of one key sees the row come, change, change its key, and go")
  func ownRow() async throws {
    let directory = try TemporaryDirectory()
    let database = try await Self.database(directory)
    var titles = database.observe { try Note.find("c", in: $0)?.title }.makeAsyncIterator()
    #expect(try await titles.next() == .some(nil))
    let steps: [(String, String?)] = [
      ("INSERT INTO notes(id, title) VALUES ('c', '1')", "1"),
      ("UPDATE notes SET title = '2' WHERE id = 'c'", "2"),
      ("REPLACE INTO notes(id, title) VALUES ('c', '3')", "3"),
      ("UPDATE notes SET id = 'd' WHERE id = 'c'", nil),
      ("UPDATE notes SET id = 'c' WHERE id = 'd'", "3"),
      ("DELETE FROM notes", nil),
      ("INSERT INTO notes(id, title) SELECT 'c', '4'", "4"),
      ("ALTER TABLE notes RENAME TO old", nil),
      ("CREATE TABLE notes(id TEXT PRIMARY KEY, title TEXT, done, list)", nil),
      ("INSERT INTO notes SELECT id, '5', done, list FROM old", "5"),
      ("DROP TABLE notes", nil),
    ]
    var last: String?
    for (sql, title) in steps {
      try await database.write { _ = try $0.execute(sql) }
      if title == last { continue }
      #expect(try await titles.next() == .some(title), "\(sql)")
      last = title
    }
    await database.close()
  }

  @Test("a write by another process runs a query of one key")
  func otherProcess() async throws {
    let directory = try TemporaryDirectory()
    let database = try await Self.database(directory)
    var titles = database.observe { try Note.find("a", in: $0)?.title }.makeAsyncIterator()
    #expect(try await titles.next() == "A")
    try raw("UPDATE notes SET title = 'B' WHERE id = 'a'", at: database.path)
    #expect(try await titles.next() == "B")
    await database.close()
  }

  @Test(
    "no change is missed: random writes, with triggers, cascades and replacements",
    arguments: [true, false])
  func random(usesRowHook: Bool) throws {
    let directory = try TemporaryDirectory()
    let world = try RandomWrites(directory.file("some.db").path, usesRowHook: usesRowHook)
    for _ in 0..<1_500 { try world.step() }
    #expect(world.changedResults > 300)
    if usesRowHook { #expect(world.spared > world.needless) }
  }
}

/// A writing connection with random statements, and queries of a reading one.
private final class RandomWrites {
  private typealias Fetch = (Database) throws -> [RecordColumns]
  private let writer: SQLiteConnection
  private let reader: SQLiteConnection
  private let reporter: ChangeReporter
  private let hub = ChangeHub(version: { nil }, pause: {})
  private let reported = Reported()
  private var random = SeededGenerator(seed: 11)
  private let queries: [Fetch]
  private var last: [(region: ReadRegion, rows: [RecordColumns])] = []
  /// Steps and queries with another result.
  private(set) var changedResults = 0
  /// Those without a run, and without another result.
  private(set) var spared = 0
  /// Those with a run, but without another result.
  private(set) var needless = 0

  init(_ path: String, usesRowHook: Bool) throws {
    writer = try SQLiteConnection(path: path)
    try writer.execute("PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON")
    writer.guardUserStatements()
    reporter = ChangeReporter(writer, usesRowHook: usesRowHook)
    try writer.execute(
      """
      CREATE TABLE t(k TEXT PRIMARY KEY, v INTEGER UNIQUE, list TEXT);
      CREATE TABLE w(k TEXT PRIMARY KEY, v INTEGER UNIQUE, list TEXT) WITHOUT ROWID;
      CREATE TABLE n(k INTEGER PRIMARY KEY AUTOINCREMENT, t TEXT REFERENCES t(k) ON DELETE CASCADE
        ON UPDATE CASCADE, list TEXT);
      CREATE TABLE m(k TEXT PRIMARY KEY, w TEXT REFERENCES w(k) ON DELETE SET NULL, list TEXT) WITHOUT ROWID;
      CREATE TABLE g(k TEXT PRIMARY KEY, v INTEGER, list TEXT AS ('l' || v % 4));
      CREATE VIRTUAL TABLE f USING fts5(k, v, list);
      CREATE TRIGGER t1 AFTER UPDATE ON t BEGIN
        INSERT OR REPLACE INTO g(k, v) VALUES (OLD.k, NEW.v);
        INSERT INTO f VALUES (NEW.k, NEW.v, NEW.list);
      END;
      CREATE TRIGGER t2 AFTER INSERT ON w BEGIN
        INSERT OR IGNORE INTO m VALUES (NEW.k, NEW.k, NEW.list);
      END;
      CREATE VIEW tv AS SELECT k, list FROM t;
      """)
    reader = try SQLiteConnection(path: path, mode: .readOnly)
    reader.guardUserStatements()
    reader.recordTables()
    var queries: [Fetch] = []
    for table: Name in ["t", "w", "n", "m", "g", "f", "tv"] {
      let all = Table<RecordColumns>(table).all.order(Field("k").ascending)
      for number in 0..<3 {
        queries.append { try all.where(Field("k") == "k\(number)").fetch($0) }
        queries.append { try all.where(Field("list") == "l\(number)").fetch($0) }
      }
      queries.append { try all.where(Field("k").between("k2", and: "k4")).fetch($0) }
      queries.append { try all.where(!(Field("list") == "l1")).limit(2).fetch($0) }
    }
    for number in 0..<8 {
      let rows = Table<RecordColumns>("t").all.where(Field("v") == number)
      queries.append { database in
        let count = try rows.count(database)
        return [["n": count]]
      }
      queries.append { try Table<RecordColumns>("n").find(number, in: $0).map { [$0] } ?? [] }
    }
    queries.append {
      try [["n": $0.query("SELECT seq FROM sqlite_sequence").first?.values[0] ?? .null]]
    }
    self.queries = queries
    _ = hub.add(
      ChangeHub.Listener { [reported] changed in
        reported.changes.withLock { $0.append(changed) }
      } needsRows: { _ in
        true
      } close: {
      })
    reporter.hub = hub
    last = try queries.map(run)
  }

  private func run(_ query: Fetch) throws -> (ReadRegion, [RecordColumns]) {
    try reader.transaction(.deferred) {
      let database = Database(connection: reader)
      let rows = try query(database)
      return (database.region, rows)
    }
  }

  func step() throws {
    let statements = (0..<Int.random(in: 1...3, using: &random)).map { _ in statement() }
    do {
      try writer.transaction {
        let database = Database(connection: writer)
        for sql in statements { try database.execute(sql) }
      }
    } catch is DatabaseError {
      // Some violate a constraint, and the transaction is rolled back.
    }
    reporter.report()
    let changes = reported.changes.withLock { reported in
      defer { reported = [] }
      return reported
    }
    for (place, query) in queries.enumerated() {
      let isConcerned = changes.contains { $0.concern(last[place].region) }
      let new = try run(query)
      if new.1 != last[place].rows {
        changedResults += 1
        #expect(isConcerned, "\(statements) changed query \(place)")
      } else if isConcerned {
        needless += 1
      } else {
        spared += 1
      }
      if isConcerned { last[place] = new }
    }
  }

  private func statement() -> String {
    func text(_ prefix: String, _ count: Int) -> String {
      "'\(prefix)\(Int.random(in: 0..<count, using: &random))'"
    }
    let number = Int.random(in: 0..<8, using: &random)
    let table = ["t", "w", "t", "w", "g"].randomElement(using: &random) ?? "t"
    let list = table == "g" ? "" : ", list"
    let value = table == "g" ? "" : ", \(text("l", 4))"
    switch Int.random(in: 0..<40, using: &random) {
    case 0:
      return "DELETE FROM \(["t", "w", "n", "m", "g", "f"].randomElement(using: &random) ?? "t")"
    case 1..<4: return "DELETE FROM \(table) WHERE k = \(text("k", 6))"
    case 4..<8:
      return "UPDATE OR REPLACE \(table) SET k = \(text("k", 6)) WHERE k = \(text("k", 6))"
    case 8..<12: return "UPDATE OR IGNORE \(table) SET v = \(number) WHERE k = \(text("k", 6))"
    case 12..<18:
      return "REPLACE INTO \(table)(k, v\(list)) VALUES (\(text("k", 6)), \(number)\(value))"
    case 18..<24:
      return "INSERT INTO \(table)(k, v\(list)) VALUES (\(text("k", 6)), \(number)\(value)) "
        + "ON CONFLICT(k) DO UPDATE SET v = excluded.v"
    case 24..<28: return "INSERT INTO n(t, list) SELECT k, list FROM t WHERE k = \(text("k", 6))"
    case 28..<30: return "UPDATE n SET list = \(text("l", 4)) WHERE k % 5 = \(number)"
    case 30..<32: return "INSERT OR IGNORE INTO t SELECT * FROM w"
    case 32..<34: return "INSERT INTO f VALUES (\(text("k", 6)), \(number), \(text("l", 4)))"
    case 34: return "UPDATE f SET list = \(text("l", 4)) WHERE k = \(text("k", 6))"
    case 35:
      return "ALTER TABLE n ADD COLUMN x\(UInt32.random(in: 0 ... .max, using: &random)) DEFAULT 1"
    default: return "UPDATE \(table) SET v = v WHERE k = \(text("k", 6))"
    }
  }
}

private final class Reported: Sendable {
  let changes = Mutex<[ChangedTables]>([])
}

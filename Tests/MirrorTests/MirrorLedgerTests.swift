import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMirror

/// The writes kept by PostgreSQL until the space has them, in a real database.
@Suite("Captured writes", .hangLimit)
struct MirrorLedgerTests {
  private let connection: PostgresConnection

  init() throws {
    connection = try PostgresConnection(url: try PostgresCluster.shared().createDatabase())
    try connection.execute(MirrorLedger.tables)
    try connection.execute(
      "INSERT INTO ferry_mirror.mirrors(name, space, schema) VALUES ('crm', 'demo', 'app')")
  }

  private func capture(_ count: Int) throws {
    try connection.execute(
      """
      INSERT INTO ferry_mirror.captured(mirror, tab, kind, key, names, vals)
      SELECT 1, 'tasks', 'I', ARRAY['k' || n], '{title}', ARRAY['t' || n]
      FROM generate_series(1, \(count)) n
      """)
  }

  private func ids(_ part: CapturedWrites) -> [Int64] { part.writes.map(\.id) }

  /// The notes of a file about a part: the last write, and the writes deferred to a later part.
  private func read(_ part: CapturedWrites, puttingOff later: [Int64]) throws -> ReadWrites {
    let last = try #require(part.writes.last)
    return ReadWrites(turn: 1, marks: [(last.transaction, last.tries, last.id)], later: later)
  }

  @Test("a transaction with more writes than a step may have is read in parts")
  func parts() throws {
    try capture(25)
    var ledger = MirrorLedger(number: 1)
    ledger.transactionMax = 10
    let first = try ledger.captured(connection)
    #expect(first.isPart && ids(first) == Array(1...10))
    // All but one wait for a later part; to do it again after a kill changes nothing.
    let noted = try read(first, puttingOff: [1, 2, 3, 4, 5, 6, 7, 8, 9])
    for _ in 0..<2 { try ledger.remove(noted, connection) }
    let second = try ledger.captured(connection)
    #expect(second.isPart && ids(second) == Array(11...20))
    try ledger.remove(try read(second, puttingOff: []), connection)
    // The deferred ones come after the others, once more in their order.
    let third = try ledger.captured(connection)
    #expect(third.isPart && ids(third) == Array(21...25) + Array(1...5))
    #expect(third.writes.map(\.tries) == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    try ledger.remove(try read(third, puttingOff: [2]), connection)
    let fourth = try ledger.captured(connection)
    #expect(!fourth.isPart && ids(fourth) == Array(6...9) + [2])
    try ledger.remove(try read(fourth, puttingOff: []), connection)
    #expect(try ledger.captured(connection).writes == [])
  }

  @Test("a table being followed is followed again after a kill, also with the former definition")
  func following() throws {
    let ledger = MirrorLedger(number: 1)
    try connection.execute("CREATE TABLE public.tasks(id text PRIMARY KEY, title text)")
    try connection.execute(
      """
      INSERT INTO ferry_mirror.recorded(mirror, tab, target, function, triggers, columns, shape)
      SELECT 1, 'tasks', 'public.tasks', '', 0, '{id,title}',
        \(TableShape.sql("'public.tasks'::regclass::oid"))
      """)
    #expect(try !ledger.hasOtherShapes(connection))
    for _ in 0..<2 { try ledger.beginFollowing(["tasks"], connection) }
    #expect(try ledger.hasOtherShapes(connection))
    let shape = try #require(try ledger.otherShapes(connection).first)
    #expect(shape.former == shape.present && shape.columns == ["id", "title"])
  }

  @Test("transactions of large texts that compress well are read within the bound of a step")
  func large() throws {
    for _ in 0..<30 {
      try connection.execute(
        """
        INSERT INTO ferry_mirror.captured(mirror, tab, kind, key, names, vals)
        SELECT 1, 'tasks', 'I', '{k}', '{title}', ARRAY[repeat('a', 524288)]
        FROM generate_series(1, 2)
        """)
    }
    let ledger = MirrorLedger(number: 1)
    var (all, transactions): ([Int64], [String]) = ([], [])
    while true {
      let part = try ledger.captured(connection)
      if part.writes.isEmpty { break }
      let bytes = part.writes.reduce(0) { $0 + ($1.values[0]?.utf8.count ?? 0) }
      #expect(bytes <= MirrorLedger.bytesMax && !part.isPart && part.writes.count % 2 == 0)
      all += ids(part)
      transactions += part.writes.map(\.transaction)
      let marks = part.read.map { ($0.key, $0.value.tries, $0.value.id) }
      try ledger.remove(ReadWrites(turn: 1, marks: marks), connection)
    }
    #expect(all == Array(1...60))
    #expect(Set(transactions).count == 30)
  }

  @Test("tables that were restored keep their captured writes until they are compared")
  func restored() throws {
    try capture(2)
    let ledger = MirrorLedger(number: 1)
    try connection.execute("UPDATE ferry_mirror.mirrors SET turn = 3")
    var noted = try read(try ledger.captured(connection), puttingOff: [])
    (noted.turn, noted.ended) = (9, 7)
    #expect(throws: MirrorFault.self) { try ledger.remove(noted, connection) }
    #expect(try ledger.captured(connection).writes.count == 2)
    let turn = try connection.query(.once("SELECT turn FROM ferry_mirror.mirrors")).first?.int8(0)
    #expect(turn == 3)
    try connection.execute("UPDATE ferry_mirror.mirrors SET turn = 7")
    try ledger.remove(noted, connection)
    #expect(try ledger.captured(connection).writes.isEmpty)
  }

  @Test("a removed write settles the unsent row of its key, and only that")
  func unsent() throws {
    try capture(2)
    let ledger = MirrorLedger(number: 1)
    let rows = ["k1", "k2", "k3"].map {
      UnsentRow(table: "tasks", key: [$0], reason: "it waits", canRetry: false)
    }
    try ledger.unsent.store(rows, connection)
    let part = try ledger.captured(connection)
    try ledger.remove(try read(part, puttingOff: []), connection)
    #expect(try ledger.unsent.list(connection).rows.map(\.key) == [["k3"]])
    // An update sends some columns: the row is to be sent as a whole again.
    try connection.execute(
      """
      INSERT INTO ferry_mirror.captured(mirror, tab, kind, key, names, vals, olds)
      VALUES (1, 'tasks', 'U', '{k3}', '{title}', '{a}', '{b}')
      """)
    try ledger.remove(try read(ledger.captured(connection), puttingOff: []), connection)
    let retried = try connection.query(.once("SELECT retry FROM ferry_mirror.unsent"))
    #expect(try retried.first?.bool(0) == true)
  }

  private func unsentKeys(where condition: String = "true") throws -> [[String?]] {
    try connection.query(
      .once("SELECT key FROM ferry_mirror.unsent WHERE \(condition) ORDER BY key")
    ).map { try $0.array(0, of: String.self) }
  }

  @Test("unsent rows are stored in a few statements, however many there are")
  func manyUnsent() throws {
    // A sequence also counts statements that are undone.
    try connection.execute(
      """
      CREATE SEQUENCE calls; CREATE FUNCTION called() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM nextval(''calls''); RETURN NULL; END';
      CREATE TRIGGER counted AFTER INSERT OR UPDATE OR DELETE ON ferry_mirror.unsent
        FOR EACH STATEMENT EXECUTE FUNCTION called()
      """)
    let ledger = MirrorLedger(number: 1)
    var rows = (0..<2_000).map {
      UnsentRow(table: "tasks", key: ["k\($0)"], reason: "it waits", canRetry: false)
    }
    rows.append(
      UnsentRow(
        table: "a \"b\"", key: ["{\\\"}, NULL", nil, ""], reason: "{x} \0", canRetry: true,
        isGone: true, holder: ["h\\\0"]))
    for _ in 0..<2 { try ledger.unsent.store(rows, connection) }
    #expect(try ledger.unsent.list(connection).count == 2_001)
    let calls = try connection.query(.once("SELECT last_value FROM calls")).first?.int8(0)
    #expect(calls == 4)
    let odd = try connection.query(
      .once("SELECT key, holder, retry, gone, reason FROM ferry_mirror.unsent WHERE tab <> 'tasks'")
    ).first
    #expect(try odd?.array(0, of: String.self) == ["{\\\"}, NULL", nil, ""])
    // No text of PostgreSQL has this character. A device's key may have it.
    #expect(try odd?.array(1, of: String.self) == ["h\\\\u0000"])
    #expect(try odd?.bool(2) == true)
    #expect(try odd?.bool(3) == true)
    #expect(try odd?.text(4) == "{x} \\u0000")
  }

  @Test("an answer of PostgreSQL that the space has refused is sent again with the reason")
  func answers() throws {
    try connection.execute(
      "CREATE TABLE tasks(id text PRIMARY KEY, title text); INSERT INTO tasks VALUES ('k2', 'x')")
    var schema = SpaceSchema.empty
    schema.tables["tasks"] = TableRules(
      definition: DeclaredTable(key: "id", columns: [DeclaredColumn("title", .text)]))
    let sql = MirrorSQL(table: try MirrorPlan(schema).tables[0], schema: "public", mirror: 1)
    let ledger = MirrorLedger(number: 1)
    var rows = ["k1", "k2", "k3"].map {
      UnsentRow(table: "tasks", key: [$0], reason: "refused", canRetry: true, isGone: $0 != "k2")
    }
    (rows[0].answer, rows[1].answer) = ("too many stars", "too long")
    try ledger.unsent.store(rows, connection)
    let count = try connection.transaction { try ledger.unsent.retry([sql], most: 9, nil, $0) }
    let writes = try ledger.captured(connection).writes.sorted { "\($0.key)" < "\($1.key)" }
    #expect(count == 3 && writes.map(\.isDelete) == [true, false, true])
    #expect(writes.map(\.reason) == ["too many stars", "too long", nil])
  }

  @Test(
    "an unsent row is sent as the table has it if the file may not know all that the space lacks")
  func whole() throws {
    try connection.execute(
      "CREATE TABLE tasks(id text PRIMARY KEY, title text); INSERT INTO tasks VALUES ('k1', 'x')")
    var schema = SpaceSchema.empty
    schema.tables["tasks"] = TableRules(
      definition: DeclaredTable(key: "id", columns: [DeclaredColumn("title", .text)]))
    let sql = MirrorSQL(table: try MirrorPlan(schema).tables[0], schema: "public", mirror: 1)
    let ledger = MirrorLedger(number: 1)
    let row = UnsentRow(table: "tasks", key: ["k1"], reason: "refused", canRetry: true)
    func retried() throws -> [Bool] {
      try ledger.unsent.store([row], connection)
      _ = try connection.transaction { try ledger.unsent.retry([sql], most: 9, nil, $0) }
      let writes = try ledger.captured(connection).writes
      try connection.execute("DELETE FROM ferry_mirror.captured")
      return writes.map(\.isRetry)
    }
    #expect(try retried() == [true])
    try ledger.unsent.sendWhole(of: "notes", connection)
    #expect(try retried() == [true])
    for table: Name? in ["tasks", nil] {
      try ledger.unsent.sendWhole(of: table, connection)
      // The next reason changes nothing.
      #expect(try retried() == [false])
      try connection.execute("DELETE FROM ferry_mirror.unsent")
      #expect(try retried() == [true])
    }
  }

  @Test("an unsent row is tried again as soon as a write frees its unique value, and not before")
  func held() throws {
    try capture(3)
    let ledger = MirrorLedger(number: 1)
    let rows = ["k1", "k2", "k9"].map {
      UnsentRow(table: "tasks", key: [$0 + "w"], reason: "", canRetry: false, holder: [$0])
    }
    try ledger.unsent.store(rows, connection)
    try connection.execute("UPDATE ferry_mirror.mirrors SET version = 2")
    #expect(try ledger.unsent.hasHeld(connection))
    var noted = try read(ledger.captured(connection), puttingOff: [])
    // The space has refused one of the writes.
    noted.refused = [UnsentRow(table: "tasks", key: ["k2"], reason: "", canRetry: false)]
    // The file has refused another one before the write of the record with the value.
    noted.unsent = [
      UnsentRow(table: "tasks", key: ["k3w"], reason: "", canRetry: false, holder: ["k3"])
    ]
    try ledger.remove(noted, connection)
    #expect(try unsentKeys(where: "retry") == [["k1w"], ["k3w"]])
    #expect(try !ledger.unsent.allowRetry(withSchema: 2, connection))
    #expect(try unsentKeys(where: "retry") == [["k1w"], ["k3w"]])
    #expect(try ledger.unsent.allowRetry(withSchema: 3, connection))
    #expect(try unsentKeys(where: "retry") == [["k1w"], ["k2w"], ["k3w"], ["k9w"]])
    try connection.execute("UPDATE ferry_mirror.unsent SET retry = false")
    #expect(try !ledger.unsent.allowRetry(withSchema: 3, connection))
    #expect(try unsentKeys(where: "retry").isEmpty)
  }
}

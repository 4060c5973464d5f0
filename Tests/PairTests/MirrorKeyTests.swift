import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Tables of a company whose keys come from sequences, while devices count by themselves.
@Suite("Mirrored sequences", .hangLimit)
struct MirrorKeyTests {
  private typealias Company = MirrorAdoptionTests.Company

  /// Identity columns, a serial, a join table with references as its key, and one with a key of its own.
  private static let tables = """
    CREATE TABLE orders(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer text,
      follows bigint REFERENCES orders);
    CREATE TABLE articles(id serial PRIMARY KEY, name text);
    CREATE TABLE lines(id bigserial PRIMARY KEY, order_id bigint NOT NULL REFERENCES orders
      ON DELETE CASCADE, note text);
    CREATE TABLE order_articles(order_id bigint REFERENCES orders ON DELETE CASCADE,
      article_id int REFERENCES articles, amount int, PRIMARY KEY(order_id, article_id));
    INSERT INTO orders(customer) VALUES ('old 1'), ('old 2');
    INSERT INTO orders(customer, follows) VALUES ('old 3', 1);
    INSERT INTO articles(name) VALUES ('tea'), ('cup');
    INSERT INTO lines(order_id, note) VALUES (1, 'of old 1'), (3, 'of old 3');
    INSERT INTO order_articles VALUES (1, 1, 5), (3, 2, 7)
    """
  private static let all = [
    "--table", "orders", "--table", "articles", "--table", "lines", "--table", "order_articles",
  ]

  /// All rows by their meaning, without any number.
  private static let meaning = [
    """
    SELECT o.customer, f.customer FROM orders o LEFT JOIN orders f ON f.id = o.follows
    ORDER BY o.customer
    """,
    "SELECT l.note, o.customer FROM lines l LEFT JOIN orders o ON o.id = l.order_id ORDER BY l.note",
    """
    SELECT o.customer, a.name, CAST(x.amount AS text) FROM order_articles x
      LEFT JOIN orders o ON o.id = x.order_id LEFT JOIN articles a ON a.id = x.article_id
    ORDER BY o.customer, a.name
    """,
  ]

  private func adopted(_ more: String...) async throws -> (Company, Device) {
    let company = try await Company.make(Self.tables)
    try await company.stage.mirror(company.arguments(Self.all + more))
    try await company.join()
    return (company, try await Self.device(company))
  }

  private static func device(
    _ company: Company, space: String = Device.space
  ) async throws -> Device {
    let device = try Device()
    try await device.ferry("init", "--server", company.server.url, "--space", space)
    try await device.exchange()
    try await device.ferry("track", "--create", "--all")
    try await device.exchange()
    return device
  }

  /// Inserts an order with lines and articles, without any number.
  private static func insert(_ name: String, on device: Device) async throws {
    try await device.write(
      """
      INSERT INTO orders(customer, follows) SELECT '\(name)', id FROM orders WHERE customer = 'old 2';
      INSERT INTO lines(order_id, note) SELECT id, '\(name), line 1' FROM orders WHERE customer = '\(name)';
      INSERT INTO lines(order_id, note) SELECT id, '\(name), line 2' FROM orders WHERE customer = '\(name)';
      INSERT INTO order_articles SELECT o.id, a.id, 2 FROM orders o, articles a
        WHERE o.customer = '\(name)' AND a.name = 'cup'
      """)
  }

  /// Waits until the rows of a device mean the same as those of the company.
  private func expectEqual(
    _ company: Company, _ device: Device, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await company.stage.quiet()
    for query in Self.meaning {
      do {
        try await eventually(query) {
          try await device.exchangeAll()
          return try await device.rows(query).map { $0.map(\.text) } == company.stage.rows(query)
        }
      } catch {
        Issue.record(
          """
          \(error): \(try await device.rows(query).map { $0.map(\.text) }) \
          \(try company.stage.rows(query))
          """, sourceLocation: sourceLocation)
      }
    }
  }

  private func verify(_ company: Company) async throws {
    #expect(try await company.stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
  }

  private func end(_ run: ChildProcess) async throws {
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test(
    "two offline devices insert without a number: both orders get numbers of the sequence",
    arguments: ["triggers", "log"])
  func offline(_ capture: String) async throws {
    let (company, other) = try await adopted("--capture", capture)
    let stage = company.stage
    #expect(
      try await company.device.rows("SELECT id, customer FROM orders ORDER BY id") == [
        [1, "old 1"], [2, "old 2"], [3, "old 3"],
      ])
    try await Self.insert("device 1", on: company.device)
    try await Self.insert("device 2", on: other)
    #expect(try await other.value("SELECT id FROM orders WHERE customer = 'device 2'") == 4)
    try await company.device.exchange()
    try await other.exchange()
    let run = try stage.run()
    try await stage.eventuallyRows(
      "SELECT count(*)::text FROM orders WHERE customer LIKE 'device%'", [["2"]])
    try stage.sql(
      """
      INSERT INTO orders(customer) VALUES ('program'); INSERT INTO lines(order_id, note)
        SELECT id, 'of program' FROM orders WHERE customer = 'program'
      """)
    try await expectEqual(company, company.device)
    try await expectEqual(company, other)
    #expect(
      try stage.rows("SELECT id::text FROM orders ORDER BY id") == (1...6).map { ["\($0)"] })
    #expect(try stage.rows("SELECT count(*)::text FROM lines") == [["7"]])
    // Edits and deletes find the rows behind their numbers.
    try await company.device.write(
      """
      UPDATE orders SET customer = 'device 2, edited' WHERE customer = 'device 2';
      UPDATE lines SET order_id = (SELECT id FROM orders WHERE customer = 'program')
        WHERE note = 'device 1, line 2';
      DELETE FROM order_articles WHERE amount = 2; DELETE FROM orders WHERE customer = 'old 3'
      """)
    try await company.device.exchange()
    try await stage.eventuallyRows(
      "SELECT customer FROM orders WHERE customer IN ('old 3', 'device 2, edited')",
      [["device 2, edited"]])
    try stage.sql(
      """
      DELETE FROM orders WHERE customer = 'device 1';
      UPDATE lines SET note = note || '!' WHERE note LIKE 'device 2%'
      """)
    try await expectEqual(company, other)
    try await expectEqual(company, company.device)
    try await end(run)
    try await verify(company)
    #expect(
      try stage.rows(
        "SELECT count(*)::text FROM ferry_mirror.keys k WHERE tab = 'orders'") == [["1"]])
    if capture == "log" { try await stage.mirror(["remove", "crm"]) }
  }

  @Test("killed at any moment, the mirror gives each row one number")
  func killed() async throws {
    let (company, other) = try await adopted()
    let stage = company.stage
    for round in 0..<6 {
      try await Self.insert("a\(round)", on: company.device)
      try await Self.insert("b\(round)", on: other)
      try await company.device.exchange()
      try await other.exchange()
      let run = try stage.run()
      try stage.sql("INSERT INTO orders(customer) VALUES ('program \(round)')")
      // The moments differ: after the numbers, after the rows, or later.
      let table = ["ferry_mirror.keys WHERE tab = 'lines'", "orders WHERE customer LIKE 'a%'"][
        round % 2]
      try await eventually("round \(round) has begun", from: run) {
        let least = round % 2 == 0 ? 4 * round + 1 : round + 1
        let count = try? stage.rows("SELECT count(*)::text FROM \(table)").first?.first
        return (count ?? nil).flatMap { Int($0) } ?? 0 >= least
      }
      run.send(SIGKILL)
      _ = try await run.exitStatus()
    }
    let run = try stage.run()
    try await stage.eventuallyRows(
      "SELECT count(*)::text, count(DISTINCT customer)::text FROM orders", [["21", "21"]])
    try await expectEqual(company, company.device)
    try await expectEqual(company, other)
    #expect(try stage.rows("SELECT count(*)::text FROM lines") == [["26"]])
    try await end(run)
    try await verify(company)
  }

  @Test("a program's own number never makes two rows one")
  func ownNumber() async throws {
    let (company, other) = try await adopted()
    let stage = company.stage
    try await Self.insert("device", on: company.device)
    try await company.device.exchange()
    // The mirror cannot see the row, and the sequence gives the device the same number.
    let program = try PostgresConnection(url: stage.database)
    try program.execute("BEGIN")
    try program.execute(
      """
      INSERT INTO orders(id, customer) OVERRIDING SYSTEM VALUE VALUES (4, 'own');
      INSERT INTO lines(order_id, note) VALUES (4, 'of own')
      """)
    let run = try stage.run()
    try await stage.eventuallyRows(
      "SELECT count(*)::text FROM ferry_mirror.keys WHERE tab = 'orders' AND number = 4", [["1"]])
    try program.execute("COMMIT")
    try await stage.eventuallyRows(
      "SELECT customer FROM orders WHERE customer IN ('own', 'device') ORDER BY id",
      [["own"], ["device"]])
    try await expectEqual(company, company.device)
    try await expectEqual(company, other)
    // A sequence behind the rows is passed over.
    try stage.sql(
      """
      INSERT INTO orders(id, customer) OVERRIDING SYSTEM VALUE
      SELECT i, 'import ' || i FROM generate_series(6, 300) i
      """)
    try await Self.insert("device 2", on: other)
    try await other.exchange()
    try await stage.eventuallyRows(
      "SELECT (id > 300)::text FROM orders WHERE customer = 'device 2'", [["true"]])
    // Another key is another record.
    try stage.sql(
      """
      INSERT INTO orders(id, customer) OVERRIDING SYSTEM VALUE VALUES (900, 'moved');
      ALTER TABLE orders ALTER id SET GENERATED BY DEFAULT; UPDATE orders SET id = 901 WHERE id = 900
      """)
    try await expectEqual(company, company.device)
    try await end(run)
    try await verify(company)
  }

  @Test("adopted again, also without the former rows or with a lost file, each row is itself")
  func again() async throws {
    let (company, other) = try await adopted()
    let stage = company.stage
    try await Self.insert("device", on: company.device)
    try await company.device.exchange()
    var run = try stage.run()
    try await stage.eventuallyRows("SELECT count(*)::text FROM lines", [["4"]])
    try await end(run)
    let numbers = try stage.rows("SELECT id::text, customer FROM orders ORDER BY id")
    for round in 0..<3 {
      switch round {
      case 0: try await stage.mirror(["remove", "crm"])
      case 1: try await stage.mirror(["remove", "crm", "--forget"])
      default:
        for name in ["replica.db", "replica.db-wal", "replica.db-shm"] {
          try? FileManager.default.removeItem(atPath: stage.mirrors.url.path + "/crm/" + name)
        }
      }
      try await Self.insert("round \(round)", on: other)
      try await other.exchange()
      try stage.sql("UPDATE lines SET note = note || '.' WHERE note LIKE 'of old%'")
      if round < 2 { try await stage.mirror(company.arguments(Self.all)) }
      run = try stage.run()
      try await stage.eventuallyRows(
        "SELECT count(*)::text FROM orders WHERE customer = 'round \(round)'", [["1"]])
      try await expectEqual(company, other)
      try await end(run)
      try await verify(company)
      #expect(
        try stage.rows("SELECT id::text, customer FROM orders ORDER BY id LIMIT 4") == numbers)
    }
    try await expectEqual(company, company.device)
    #expect(try stage.rows("SELECT count(*)::text FROM orders") == [["7"]])
  }

  @Test("a group's spaces share a table and a sequence, and a row may move from one to another")
  func group() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE orders(id bigserial PRIMARY KEY, account text NOT NULL, customer text);
      CREATE TABLE lines(id bigserial PRIMARY KEY, account text NOT NULL,
        order_id bigint REFERENCES orders, note text);
      INSERT INTO orders(account, customer) VALUES ('a', 'one'), ('b', 'two');
      INSERT INTO lines(account, order_id, note) VALUES ('a', 1, 'of one'), ('b', 2, 'of two')
      """)
    let stage = company.stage
    try await stage.mirror(
      [
        "adopt", "all", "--server", company.server.url, "--database", stage.database, "--table",
        "orders", "--table", "lines", "--space-column", "account", "--space-name", "account-{}",
      ])
    let (one, two) = (
      try await Self.device(company, space: "account-a"),
      try await Self.device(company, space: "account-b")
    )
    let query = """
      SELECT o.customer, l.note FROM orders o LEFT JOIN lines l ON l.order_id = o.id ORDER BY 1
      """
    for device in [one, two] {
      try await device.write(
        """
        INSERT INTO orders(customer) VALUES ('new'); INSERT INTO lines(order_id, note)
          SELECT id, 'of new' FROM orders WHERE customer = 'new'
        """)
      try await device.exchange()
    }
    let run = try stage.run("all")
    try await stage.eventuallyRows(
      "SELECT account, count(*)::text FROM orders GROUP BY 1 ORDER BY 1",
      [["a", "2"], ["b", "2"]])
    try await stage.eventuallyRows("SELECT count(*)::text FROM lines", [["4"]])
    try stage.sql(
      """
      BEGIN; UPDATE lines SET account = 'b' WHERE account = 'a' AND note = 'of new';
      UPDATE orders SET account = 'b' WHERE account = 'a' AND customer = 'new'; COMMIT
      """)
    for (device, account, count) in [(one, "a", 1), (two, "b", 3)] {
      let there = query.replacingOccurrences(
        of: "ORDER", with: "WHERE o.account = '\(account)' ORDER")
      try await eventually("the rows of \(account)") {
        try await device.exchange()
        let rows = try await device.rows(query).map { $0.map(\.text) }
        return try rows.count == count && rows == stage.rows(there)
      }
    }
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "all"]).output == "0 rows differ\n")
  }
}

extension Value {
  /// The value as PostgreSQL's text; `nil` for NULL.
  fileprivate var text: String? {
    switch self {
    case .text(let text): text
    case .integer(let number): "\(number)"
    default: nil
    }
  }
}

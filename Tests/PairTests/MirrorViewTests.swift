import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Views of a company, and tables that the role may only read, as read-only tables of a space.
@Suite("Views in mirrors", .hangLimit)
struct MirrorViewTests {
  private typealias Company = MirrorAdoptionTests.Company

  private static let shop = """
    CREATE TABLE customers(id int PRIMARY KEY, name text);
    CREATE TABLE orders(id int PRIMARY KEY, customer int REFERENCES customers ON DELETE CASCADE, total int);
    CREATE VIEW totals AS SELECT c.id AS customer, c.name, count(o.id) AS orders, sum(o.total) AS total
      FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id;
    INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bob'); INSERT INTO orders VALUES (1, 1, 10), (2, 1, 20);
    """
  private static let totals = """
    SELECT CAST(customer AS text), name, CAST(orders AS text), CAST(total AS text) FROM totals
    ORDER BY totals.customer
    """
  private static let customers =
    "SELECT CAST(id AS text), name FROM customers ORDER BY customers.id"

  private func stop(_ run: ChildProcess) async throws {
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test("a view travels with the right SELECT alone, and changes of the tables below it arrive")
  func travels() async throws {
    let company = try await Company.make(Self.shop)
    let (stage, device) = (company.stage, company.device)
    let roles = try MirrorRoleTests.Roles(stage, blocks: [0])
    defer { roles.drop() }
    try stage.sql(
      """
      GRANT USAGE ON SCHEMA public TO \(roles.mirror); GRANT SELECT ON totals, customers TO \(roles.mirror)
      """)
    let options: [String] = [
      "crm", "--server", company.server.url, "--space", Device.space, "--database",
      try roles.url(roles.mirror), "--table", "totals", "--view", "customers",
    ]
    let refused = try await stage.mirror(["plan"] + options, exits: 1).output
    #expect(refused.contains("table totals cannot be adopted: it is a view without a key"))
    let whole = options + ["--view-key", "totals=customer"]
    let plan = try await stage.mirror(["plan"] + whole).output
    #expect(plan.contains("rows       totals: about 2"), "\(plan)")
    #expect(plan.contains("capture    totals: compared with a copy"), "\(plan)")
    #expect(
      plan.contains("left out   customers: writes of devices: the mirror only reads it"), "\(plan)")
    let adopted = try await stage.mirror(["adopt"] + whole).output
    #expect(adopted.contains("adopted    totals: 2 rows"), "\(adopted)")
    try await company.join()
    try await company.expectEqual(Self.totals, count: 2)
    let run = try stage.run()
    try stage.sql("INSERT INTO orders VALUES (3, 2, 5); INSERT INTO customers VALUES (3, 'Cy')")
    try await company.expectEqual(Self.totals, count: 3)
    try await company.expectEqual(Self.customers, count: 3)
    try stage.sql("DELETE FROM customers WHERE id = 1; UPDATE orders SET total = 6")
    try await company.expectEqual(Self.totals, count: 2)
    // A device's writes go back.
    try await device.write(
      "UPDATE totals SET name = 'mine'; INSERT INTO customers VALUES (9, 'own')")
    try await device.exchangeAll()
    try await company.expectEqual(Self.totals, count: 2)
    try await company.expectEqual(Self.customers, count: 2)
    try await eventually("the device sees the reason") {
      try await device.exchangeAll()
      let entries = try await device.open().quarantine.entries()
      return Set(entries.map(\.detail)).contains("permission denied for table totals")
    }
    try await stop(run)
    try stage.sql("INSERT INTO orders VALUES (5, 3, 8)")
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    try await company.expectEqual(Self.totals, count: 2)
    // Rows deleted without a mirror are deleted on devices.
    try await stage.mirror(["remove", "crm"])
    #expect(
      try stage.rows("SELECT relname::text FROM pg_class WHERE relname ~ '^view_[0-9]'") == [])
    try stage.sql("DELETE FROM customers WHERE id = 2")
    try await stage.mirror(["adopt"] + whole)
    try await company.expectEqual(Self.totals, count: 1)
  }

  @Test("the space refuses a writer's change of a view before the mirror sees it")
  func forbidden() async throws {
    let server = try await Server.start()
    let admin = try await server.token("admin")
    let device = try await Device.joined(server.url, token: try await server.token("writer"))
    let stage = MirrorTests.Stage(
      server: server, device: device, database: try await Server.database(),
      mirrors: try TemporaryDirectory())
    let company = Company(server: server, stage: stage)
    try stage.sql(Self.shop)
    try await company.adopt(
      "--table", "totals", "--view-key", "totals=customer", "--token", admin)
    try await company.join()
    try await device.write("UPDATE totals SET name = 'mine' WHERE customer = 1")
    try await device.exchangeAll()
    let entries = try await device.open().quarantine.entries()
    #expect(entries.map(\.detail).contains { $0.contains("need the role admin") }, "\(entries)")
    try await company.expectEqual(Self.totals, count: 2)
  }

  @Test("a view that fails keeps its rows, is named, and stops neither views nor tables behind it")
  func failing() async throws {
    let company = try await Company.make(
      Self.shop + """
        CREATE VIEW broken AS SELECT id, 100 / total AS share FROM orders;
        """)
    let stage = company.stage
    try await company.adopt(
      "--table", "broken", "--view-key", "broken=id", "--table", "totals", "--view-key",
      "totals=customer", "--table", "orders")
    try await company.join()
    let shares = "SELECT CAST(id AS text), CAST(share AS text) FROM broken ORDER BY broken.id"
    try await company.expectEqual(shares, count: 2)
    let run = try stage.run()
    try stage.sql("INSERT INTO orders VALUES (3, 2, 0)")
    _ = try await run.line { $0.contains("view broken: division by zero") }
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("fault      view broken: division by zero"), "\(status)")
    try await company.expectEqual(Self.totals, count: 2)
    let orders = "SELECT CAST(id AS text), CAST(total AS text) FROM orders ORDER BY orders.id"
    try await company.expectEqual(orders, count: 3)
    #expect(try await company.device.rows("SELECT id FROM broken ORDER BY id") == [[1], [2]])
    // A granted right changes no table.
    try stage.sql("UPDATE orders SET total = 4 WHERE id = 3")
    try await company.expectEqual(shares, count: 3)
    try await stage.mirror(["status", "crm"])
    try await stop(run)
    // Without the view, verify compares the other tables.
    try stage.sql("DROP VIEW broken; INSERT INTO orders VALUES (4, 2, 1)")
    let verified = try await stage.mirror(["verify", "crm"], exits: 4).output
    #expect(
      verified.contains("1 view failing") && verified.contains("0 rows differ"), "\(verified)")
    try await company.expectEqual(orders, count: 4)
  }

  @Test("rows of one key in a view are named, and all others travel")
  func ambiguous() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE sales(id int PRIMARY KEY, region text, total int);
      CREATE VIEW regions AS SELECT region, total FROM sales;
      INSERT INTO sales VALUES (1, 'north', 5), (2, 'south', 6), (3, 'north', 7), (4, NULL, 8);
      """)
    let stage = company.stage
    let adopted = try await company.adopt(
      "--table", "regions", "--view-key", "regions=region", exits: 4
    ).output
    let reason = "several rows of one key do not travel: 2 with the key north, and 1 other key"
    #expect(adopted.contains("view regions: \(reason)"), "\(adopted)")
    try await company.join()
    let here = "SELECT region, total FROM regions ORDER BY region"
    #expect(try await company.device.rows(here) == [["south", 6]])
    let run = try stage.run()
    _ = try await run.line { $0.contains("view regions: \(reason)") }
    try stage.sql("UPDATE sales SET total = 9 WHERE id IN (2, 3)")
    try await eventually("the other row follows") {
      try await company.device.exchangeAll()
      return try await company.device.rows(here) == [["south", 9]]
    }
    try stage.sql("DELETE FROM sales WHERE id = 3")
    _ = try await run.line { $0.contains("view regions: rows without a key do not travel: 1") }
    try await eventually("a key of a single row travels") {
      try await company.device.exchangeAll()
      return try await company.device.rows(here) == [["north", 5], ["south", 9]]
    }
    try stage.sql("DELETE FROM sales WHERE id = 4")
    try await stage.eventuallyRows("SELECT reason FROM ferry_mirror.views", [[""]])
    try await stage.mirror(["status", "crm"])
    try await stop(run)
  }

  @Test("rows of a view that no device can hold are named, and all others travel")
  func unfit() async throws {
    // An index has no room for a key that cannot be compressed.
    let company = try await Company.make(
      """
      CREATE TABLE parts(id text, at timestamptz);
      CREATE VIEW offers AS SELECT id, at FROM parts;
      INSERT INTO parts VALUES ('a', '2026-11-25 18:00:00+00'), ('b', 'infinity');
      INSERT INTO parts SELECT string_agg(md5(i::text), ''), NULL FROM generate_series(1, 300) i;
      """)
    let stage = company.stage
    let options = ["--table", "offers", "--view-key", "offers=id"]
    let adopted = try await stage.mirror(company.arguments(options), exits: 4).output
    let reason = "rows that no device can hold do not travel:"
    #expect(
      adopted.contains("\(reason) column at of the row with the key b, and 1 other row"),
      "\(adopted)")
    try await company.join()
    let here = "SELECT id FROM offers ORDER BY id"
    #expect(try await company.device.rows(here) == [["a"]])
    let run = try stage.run()
    try stage.sql("UPDATE parts SET at = NULL WHERE id = 'b'")
    _ = try await run.line { $0.contains("\(reason) the key c4ca4238a0b923820dcc509a6f75849b") }
    try await eventually("the row follows") {
      try await company.device.exchangeAll()
      return try await company.device.rows(here) == [["a"], ["b"]]
    }
    try stage.sql("DELETE FROM parts WHERE length(id) > 1")
    try await stage.eventuallyRows("SELECT reason FROM ferry_mirror.views", [[""]])
    try await stop(run)
  }

  @Test("rows that the space has from before stay until a view works that has failed at first")
  func returned() async throws {
    let company = try await Company.make(
      Self.shop + "CREATE VIEW broken AS SELECT id, 100 / total AS share FROM orders;")
    let stage = company.stage
    let options = ["--table", "broken", "--view-key", "broken=id"]
    try await stage.mirror(company.arguments(options))
    try await company.join()
    let here = "SELECT id FROM broken ORDER BY id"
    #expect(try await company.device.rows(here) == [[1], [2]])
    // Another machine has no rows of the former mirror.
    try await stage.mirror(["remove", "crm"])
    try FileManager.default.removeItem(at: stage.mirrors.url.appendingPathComponent("crm"))
    try stage.sql("DELETE FROM orders WHERE id = 1; INSERT INTO orders VALUES (3, 2, 0)")
    let both = options + ["--table", "customers"]
    try await stage.mirror(company.arguments(both), exits: 4)
    var run = try stage.run()
    try await company.join()
    try await company.expectEqual(Self.customers, count: 2)
    // Nor does a device's change: it waits.
    try await company.device.write(
      "DELETE FROM broken WHERE id = 2; UPDATE customers SET name = 'Al' WHERE id = 1")
    try await company.device.exchangeAll()
    try await stage.eventuallyRows("SELECT name FROM customers WHERE id = 1", [["Al"]])
    #expect(try await company.device.rows(here) == [[1]])
    try await stop(run)
    let waiting = "waiting    view broken: never compared yet"
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains(waiting) && status.contains("view broken: division by"), "\(status)")
    let verified = try await stage.mirror(["verify", "crm", "--repair", "space"], exits: 4).output
    #expect(verified.contains("0 rows differ"), "\(verified)")
    try await company.device.exchangeAll()
    #expect(try await company.device.rows(here) == [[1]])
    run = try stage.run()
    try stage.sql("UPDATE orders SET total = 4 WHERE id = 3")
    try await eventually("the deleted row leaves the space") {
      try await company.device.exchangeAll()
      return try await company.device.rows(here) == [[2], [3]]
    }
    try await stage.eventuallyRows("SELECT compared::text FROM ferry_mirror.views", [["true"]])
    #expect(try await !stage.mirror(["status", "crm"]).output.contains(waiting))
    try await stop(run)
  }

  @Test("an adoption reads no view while programs wait, and a long comparison delays no other row")
  func locks() async throws {
    // The view waits while the gate is closed, and shows the mirror's locks that programs notice.
    let company = try await Company.make(
      Self.shop + """
        CREATE TABLE gate(open boolean); INSERT INTO gate VALUES (true);
        CREATE FUNCTION locks() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
          LOOP EXIT WHEN (SELECT open FROM gate); PERFORM pg_sleep(0.01); END LOOP;
          RETURN (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()
            AND relation = 'orders'::regclass AND mode <> 'AccessShareLock'); END $$;
        CREATE VIEW held AS SELECT 1 AS id, locks() AS locks, count(*) AS orders FROM orders;
        """)
    let stage = company.stage
    try await company.adopt("--table", "orders", "--table", "held", "--view-key", "held=id")
    try await company.join()
    #expect(try await company.device.rows("SELECT id, locks, orders FROM held") == [[1, 0, 2]])
    let run = try stage.run()
    try stage.sql("UPDATE gate SET open = false; INSERT INTO orders VALUES (3, 2, 5)")
    let waiting = """
      SELECT count(*)::text FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event = 'PgSleep'
      """
    try await stage.eventuallyRows(waiting, [["1"]])
    let orders = "SELECT CAST(id AS text), CAST(total AS text) FROM orders ORDER BY orders.id"
    try await company.expectEqual(orders, count: 3)
    #expect(try await company.device.rows("SELECT orders FROM held") == [[2]])
    try stage.sql("UPDATE gate SET open = true")
    try await eventually("the view follows") {
      try await company.device.exchangeAll()
      return try await company.device.rows("SELECT orders FROM held") == [[3]]
    }
    try await stop(run)
  }

  @Test("a wider type of a view is followed, and one that devices do not have keeps the rows")
  func types() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE parts(id int PRIMARY KEY, price numeric(20,2), weight real, at timestamptz);
      CREATE VIEW offers AS SELECT id, price::int AS price, weight, at FROM parts;
      INSERT INTO parts VALUES (1, 2.60, 0.1, '2026-11-25 18:00:00.000001+00'), (2, 7, 3.25, '1999-01-01 00:00:00+00');
      """)
    let stage = company.stage
    try await company.adopt("--table", "offers", "--view-key", "offers=id")
    try await company.join()
    let here = "SELECT id, price, weight, at FROM offers ORDER BY id"
    let at: Value = "1999-01-01T00:00:00.000000Z"
    #expect(
      try await company.device.rows(here) == [
        [1, 3, 0.1, "2026-11-25T18:00:00.000001Z"], [2, 7, 3.25, at],
      ])
    // An equal row is no write.
    let written = "SELECT last_value::text FROM ferry_mirror.captured_id_seq"
    let before = try stage.rows(written)
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    #expect(try stage.rows(written) == before)
    let view = { (type: String) in
      """
      DROP VIEW offers; CREATE VIEW offers AS SELECT id, price::\(type) AS price, weight, at FROM parts
      """
    }
    try stage.sql(view("bigint") + "; UPDATE parts SET price = 5000000000 WHERE id = 1")
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    let prices = "SELECT price FROM offers ORDER BY id"
    try await company.device.exchange()
    #expect(try await company.device.rows(prices) == [[5_000_000_000], [7]])
    // Devices would have 8 instead of 7.5.
    try stage.sql(view("numeric(20,2)") + "; UPDATE parts SET price = 7.5 WHERE id = 2")
    #expect(try await stage.mirror(["verify", "crm"], exits: 4).output.contains("1 view failing"))
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("view offers: column price is integer on devices"), "\(status)")
    try await company.device.exchange()
    #expect(try await company.device.rows(prices) == [[5_000_000_000], [7]])
    try stage.sql(view("bigint"))
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    try await company.device.exchange()
    #expect(try await company.device.rows(prices) == [[5_000_000_000], [8]])
  }

  @Test("a query is a read-only table, and a query that fails is refused with PostgreSQL's words")
  func query() async throws {
    let company = try await Company.make(
      Self.shop
        + "CREATE TABLE rates(customer int, part numeric(4,2)); INSERT INTO rates VALUES (1, 0.5)")
    let stage = company.stage
    let plain = "SELECT id, name FROM customers WHERE id > 1 -- = all but one"
    let joined = "SELECT o.id, total, part FROM orders o JOIN rates USING (customer)"
    let failing = try await company.adopt(
      "--view", "late=SELECT id FROM nothing", "--view-key", "late=id", exits: 1
    ).error
    #expect(
      failing.contains("the query of view late fails: relation \"nothing\" does not exist"),
      "\(failing)")
    let keyless = try await company.adopt("--view", "late=\(plain)", exits: 1).error
    #expect(keyless.contains("--view-key late=COLUMN,…"), "\(keyless)")
    let options = [
      "--view", "late=\(plain)", "--view-key", "late=id", "--view", "parts=\(joined)", "--view-key",
      "parts=id",
    ]
    let plan = try await stage.mirror(["plan"] + company.arguments(options).dropFirst()).output
    #expect(plan.contains("late") && plan.contains("capture    parts: compared with a copy"))
    try await stage.mirror(company.arguments(options))
    try await company.join()
    let names = "SELECT id, name FROM late ORDER BY id"
    #expect(try await company.device.rows(names) == [[2, "Bob"]])
    let parts = "SELECT id, total, part FROM parts ORDER BY id"
    #expect(try await company.device.rows(parts) == [[1, 10, 0.5], [2, 20, 0.5]])
    let run = try stage.run()
    try stage.sql("INSERT INTO customers VALUES (3, 'Cy'); UPDATE rates SET part = 0.25")
    try await eventually("both queries follow") {
      try await company.device.exchangeAll()
      let found = (try await company.device.rows(names), try await company.device.rows(parts))
      return found == ([[2, "Bob"], [3, "Cy"]], [[1, 10, 0.25], [2, 20, 0.25]])
    }
    // No object of the mirror depends on a table of the company.
    try stage.sql("ALTER TABLE rates DROP COLUMN part")
    _ = try await run.line { $0.contains("view parts: column") }
    try stage.sql("INSERT INTO customers VALUES (4, 'Di')")
    try await eventually("the other query goes on") {
      try await company.device.exchangeAll()
      return try await company.device.rows(names).count == 3
    }
    try await stop(run)
  }

  @Test("no log captures for a view, and a group has none")
  func refused() async throws {
    let company = try await Company.make(Self.shop)
    let refused = try await company.adopt(
      "--table", "totals", "--view-key", "totals=customer", "--capture", "log", exits: 1
    ).error
    #expect(refused.contains("which the mirror only reads"), "\(refused)")
    let grouped = try await company.stage.mirror(
      [
        "adopt", "all", "--server", company.server.url, "--database", company.stage.database,
        "--table", "totals", "--view-key", "totals=customer", "--space-column", "customer",
        "--space-name", "c-{}",
      ], exits: 1
    ).error
    #expect(grouped.contains("the mirror only reads it"), "\(grouped)")
  }
}

import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Adopted tables with partitions.
@Suite("Adopted tables with partitions", .hangLimit)
struct MirrorPartitionTests {
  private typealias Company = MirrorAdoptionTests.Company

  private static let tables = """
    CREATE TABLE customers(id int PRIMARY KEY);
    CREATE TABLE payments(id int, paid timestamptz, amount numeric(7,2) NOT NULL,
      customer int REFERENCES customers ON DELETE CASCADE, PRIMARY KEY(paid, id))
      PARTITION BY RANGE (paid);
    CREATE TABLE payments_1 PARTITION OF payments FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
    CREATE TABLE payments_2(customer int, junk text, amount numeric(7,2) NOT NULL, id int NOT NULL,
      paid timestamptz NOT NULL);
    ALTER TABLE payments_2 DROP junk;
    ALTER TABLE payments ATTACH PARTITION payments_2 FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
    CREATE TABLE "payments 3" PARTITION OF payments FOR VALUES FROM ('2026-03-01') TO ('2026-04-01')
      PARTITION BY LIST (id);
    CREATE TABLE payments_3_rest PARTITION OF "payments 3" DEFAULT;
    INSERT INTO customers SELECT generate_series(1, 9);
    INSERT INTO payments SELECT i, timestamptz '2026-01-01 00:00+00' + i * interval '1 day 1 second',
      i * 1.5, i % 9 + 1 FROM generate_series(1, 80) i;
    """
  private static let query = """
    SELECT id || ':' || CAST(round(amount * 100) AS INTEGER) || ':' || coalesce(customer, '')
    FROM payments ORDER BY id
    """
  private static let texts = """
    SELECT id || ':' || (amount * 100)::bigint || ':' || coalesce(customer::text, '')
    FROM payments ORDER BY id
    """

  /// A company whose tables are adopted, and run by a mirror.
  private static func adopted(
    _ capture: String = "triggers"
  ) async throws -> (Company, ChildProcess) {
    let company = try await Company.make(tables)
    try await company.adopt(
      "--table", "payments", "--table", "customers", "--capture", capture)
    try await company.join()
    return (company, try company.stage.run())
  }

  private static func expectEqual(
    _ event: String, _ company: Company, count: Int
  ) async throws {
    let stage = company.stage
    try await eventually("the device has the rows: \(event)") {
      try await stage.quiet()
      try await company.device.exchangeAll()
      let here = try await company.device.rows(query)
      let there = try stage.rows(texts).map { $0.map { $0.map(Value.text) ?? .null } }
      return here.count == count && here == there
    }
  }

  private static func end(_ run: ChildProcess, _ company: Company) async throws {
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await company.stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    try await company.stage.mirror(["remove", "crm"])
    #expect(
      try company.stage.rows("SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal") == [])
  }

  @Test(
    "writes to the table and to a partition reach the devices, and devices' writes the table",
    arguments: ["triggers", "log"])
  func writes(_ capture: String) async throws {
    let (company, run) = try await Self.adopted(capture)
    let stage = company.stage
    // Rows that move to another partition, by the table and by a partition in between.
    try stage.sql(
      """
      UPDATE payments SET amount = 1, paid = paid + interval '28 days' WHERE id BETWEEN 1 AND 4;
      UPDATE payments SET amount = amount + 1, paid = paid - interval '10 days' WHERE id >= 32;
      UPDATE payments_1 SET amount = 2 WHERE id = 5;
      UPDATE "payments 3" SET customer = NULL WHERE id > 75;
      INSERT INTO payments_3_rest VALUES (200, '2026-03-20', 7, 1);
      INSERT INTO payments VALUES (201, '2026-03-21', 8, 1) ON CONFLICT (paid, id) DO NOTHING;
      DELETE FROM payments_2 WHERE id = 50; DELETE FROM payments WHERE id = 51;
      """)
    try await Self.expectEqual("written by programs", company, count: 80)
    try await company.device.write(
      """
      UPDATE payments SET amount = 3 WHERE id = 10;
      INSERT INTO payments VALUES ('2026-02-05T00:00:00.000000Z', 300, 9.25, 2),
        ('2030-01-01T00:00:00.000000Z', 301, 1, 1), ('2026-02-30', 302, 1, 1);
      DELETE FROM payments WHERE id = 200; DELETE FROM customers WHERE id = 3
      """)
    try await company.device.exchangeAll()
    try await stage.eventuallyRows(
      """
      SELECT amount::text FROM payments_2 WHERE id = 300
        UNION ALL SELECT id::text FROM payments_3_rest WHERE id = 200
        UNION ALL SELECT id::text FROM payments WHERE customer = 3
      """, [["9.25"]])
    let count = try stage.rows("SELECT id::text FROM payments").count
    // No partition takes one of the rows, and the other has no time.
    try await Self.expectEqual("written by a device", company, count: count)
    try stage.sql("DELETE FROM customers WHERE id = 4")
    try await Self.expectEqual(
      "deleted by a cascade", company,
      count: try stage.rows("SELECT id::text FROM payments").count)
    let left = try stage.rows("SELECT id::text FROM payments WHERE paid < '2026-02-01'").count
    try stage.sql("TRUNCATE payments_2, payments_3_rest")
    try await Self.expectEqual("truncated in parts", company, count: left)
    try stage.sql("TRUNCATE payments")
    try await Self.expectEqual("truncated", company, count: 0)
    try await Self.end(run, company)
  }

  @Test(
    "new, attached, detached and dropped partitions are found, and their rows compared",
    arguments: ["triggers", "log"])
  func changes(_ capture: String) async throws {
    let (company, run) = try await Self.adopted(capture)
    let stage = company.stage
    let before = try stage.rows("SELECT id::text FROM payments").count
    try stage.sql(
      """
      CREATE TABLE payments_4 PARTITION OF payments FOR VALUES FROM ('2026-04-01') TO ('2026-05-01');
      INSERT INTO payments_4 VALUES (400, '2026-04-02', 4, 1);
      CREATE TABLE payments_5(LIKE payments INCLUDING ALL);
      INSERT INTO payments_5 VALUES (500, '2026-05-02', 5, 1);
      ALTER TABLE payments ATTACH PARTITION payments_5 FOR VALUES FROM ('2026-05-01') TO ('2026-06-01');
      -- Wakes the mirror, as any write does.
      INSERT INTO customers VALUES (10);
      """)
    try await Self.expectEqual("in new partitions", company, count: before + 2)
    // They are captured now.
    try stage.sql("UPDATE payments_4 SET amount = 44; UPDATE payments_5 SET amount = 55")
    try await Self.expectEqual("written in new partitions", company, count: before + 2)
    try stage.sql(
      """
      ALTER TABLE payments DETACH PARTITION payments_2; DROP TABLE payments_4;
      INSERT INTO customers VALUES (11)
      """)
    let after = try stage.rows("SELECT id::text FROM payments").count
    #expect(after < before)
    try await Self.expectEqual("without partitions", company, count: after)
    // A detached one is no part of the table any more.
    try stage.sql("UPDATE payments_2 SET amount = 9; UPDATE payments SET amount = amount + 1")
    try await Self.expectEqual("beside a detached partition", company, count: after)
    // A partition that comes back with other rows.
    try stage.sql(
      """
      BEGIN; ALTER TABLE payments DETACH PARTITION payments_1;
      UPDATE payments_1 SET amount = 77 WHERE id = 1; DELETE FROM payments_1 WHERE id = 2;
      ALTER TABLE payments ATTACH PARTITION payments_1
        FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
      INSERT INTO customers VALUES (12); COMMIT
      """)
    try await Self.expectEqual("with a partition that returned", company, count: after - 1)
    try stage.sql("DROP TABLE payments_2")
    try await Self.end(run, company)
  }

  @Test("disabled triggers of a partition stop the mirror, and so does a row lost on the way")
  func stops() async throws {
    let (company, run) = try await Self.adopted()
    let stage = company.stage
    try stage.sql(
      """
      CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
      CREATE TRIGGER skip BEFORE INSERT ON payments_2 FOR EACH ROW EXECUTE FUNCTION skip();
      UPDATE payments SET paid = paid + interval '31 days' WHERE id = 2
      """)
    #expect(try await run.exitStatus() == .exited(4))
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("a trigger has left out rows"))
    try await stage.mirror(["verify", "crm", "--repair", "space"])
    try stage.sql("ALTER TABLE payments_3_rest DISABLE TRIGGER ALL")
    let stopped = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(stopped.contains("triggers of the mirror are gone or disabled"))
  }

  @Test("a partition that loses the former rows in the log stops the mirror")
  func identity() async throws {
    let (company, run) = try await Self.adopted("log")
    let stage = company.stage
    try stage.sql(
      """
      CREATE TABLE payments_4 PARTITION OF payments FOR VALUES FROM ('2026-04-01') TO ('2026-05-01');
      INSERT INTO payments VALUES (400, '2026-04-02', 4, 1), (401, '2026-04-03', 4, 1);
      UPDATE payments SET amount = 5 WHERE id = 400; DELETE FROM payments WHERE id = 401
      """)
    try await Self.expectEqual("written before the next round", company, count: 81)
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    try stage.sql("ALTER TABLE payments_1 REPLICA IDENTITY DEFAULT")
    let stopped = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(stopped.contains("the REPLICA IDENTITY of partition payments_1 is not FULL"))
    try await stage.mirror(["verify", "crm", "--repair", "space"])
    try await Self.end(try stage.run(), company)
    #expect(
      try stage.rows("SELECT relname::text FROM pg_class WHERE relreplident = 'f'") == [])
  }

  @Test("a partition is refused with the next step")
  func refused() async throws {
    let company = try await Company.make(Self.tables)
    let part = try await company.adopt("--table", "payments_1", exits: 1)
    #expect(part.error.contains("it is a partition; adopt table payments"))
  }
}

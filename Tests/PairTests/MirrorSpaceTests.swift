import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// One table of a company with rows of several spaces, each with a mirror and a device.
@Suite("Tables of several spaces", .hangLimit)
struct MirrorSpaceTests {
  /// A company, and the devices of two accounts.
  private struct Accounts {
    let company: MirrorAdoptionTests.Company
    let tables: [String]
    let devices: [Device]
    var stage: MirrorTests.Stage { company.stage }

    static func make(_ sql: String, _ tables: String...) async throws -> Accounts {
      let company = try await MirrorAdoptionTests.Company.make(sql)
      var accounts = Accounts(company: company, tables: tables, devices: [])
      for number in 1...2 {
        try await accounts.adopt(number)
        accounts = Accounts(
          company: company, tables: tables,
          devices: accounts.devices + [try await accounts.device(number)])
      }
      return accounts
    }

    @discardableResult
    func adopt(
      _ number: Int, _ more: String..., exits code: Int32 = 0
    ) async throws -> ChildProcess.Finished {
      try await stage.mirror(
        [
          "adopt", "a\(number)", "--server", company.server.url, "--space", "account-\(number)",
          "--database", stage.database, "--space-column", "account=\(number)", "--capture",
          "triggers",
        ] + tables.flatMap { ["--table", $0] } + more, exits: code)
    }

    func device(_ number: Int) async throws -> Device {
      let device = try Device()
      try await device.ferry(
        "init", "--server", company.server.url, "--space", "account-\(number)")
      try await device.exchange()
      try await device.ferry("track", "--create", "--all")
      try await device.exchange()
      return device
    }

    /// Waits until a device has the rows of a query.
    func expect(
      _ device: Int, _ query: String, _ rows: [[Value]]
    ) async throws {
      let device = devices[device]
      try await eventually("\(rows) from \(query)") {
        try await device.exchangeAll()
        return try await device.rows(query) == rows
      }
    }

    func end(_ runs: [ChildProcess], _ signal: Int32 = SIGTERM) async throws {
      for run in runs {
        run.send(signal)
        _ = try await run.exitStatus()
      }
    }
  }

  private static let tasks = """
    CREATE TABLE tasks(id int PRIMARY KEY, account int, title text, own text);
    INSERT INTO tasks SELECT i, i % 3, 't' || i, 'o' || i FROM generate_series(1, 9) i;
    INSERT INTO tasks VALUES (10, NULL, 'none')
    """

  @Test(
    "rows that PostgreSQL changes along with a device's delete or insert change in their spaces")
  func cascades() async throws {
    let accounts = try await Accounts.make(
      """
      CREATE TABLE lists(id int PRIMARY KEY, account int, size int NOT NULL DEFAULT 0);
      CREATE TABLE tasks(id int PRIMARY KEY, account int,
        list int REFERENCES lists ON DELETE CASCADE, parent int REFERENCES tasks ON DELETE CASCADE,
        old int REFERENCES lists ON DELETE SET NULL);
      CREATE TABLE steps(id int PRIMARY KEY, account int, task int REFERENCES tasks ON DELETE CASCADE);
      CREATE FUNCTION count_tasks() RETURNS trigger LANGUAGE plpgsql AS '
        BEGIN UPDATE lists SET size = size + 1 WHERE id = NEW.list; RETURN NULL; END';
      CREATE TRIGGER count AFTER INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION count_tasks();
      INSERT INTO lists VALUES (1, 1), (2, 1), (3, 2);
      INSERT INTO tasks(id, account, list) VALUES (1, 1, 1), (2, 2, 1), (3, 1, 2), (7, 2, 3);
      INSERT INTO tasks(id, account, parent) VALUES (4, 1, 3), (5, 1, 4);
      INSERT INTO tasks(id, account, list, old) VALUES (6, 1, 2, 1);
      INSERT INTO steps VALUES (1, 1, 1), (2, 2, 2), (3, 1, 5), (4, 1, 6)
      """, "lists", "tasks", "steps")
    let stage = accounts.stage
    let runs = [try stage.run("a1"), try stage.run("a2")]
    let tasks = "SELECT id, old FROM tasks ORDER BY id"
    // A child in the same space, one in the other, their children, and a row with a reference to
    // the list.
    try await accounts.devices[0].write("DELETE FROM lists WHERE id = 1")
    try await accounts.expect(
      0, tasks, [[3, .null], [4, .null], [5, .null], [6, .null]])
    try await accounts.expect(0, "SELECT id FROM steps ORDER BY id", [[3], [4]])
    try await accounts.expect(1, tasks, [[7, .null]])
    try await accounts.expect(1, "SELECT id FROM steps", [])
    // A table with references to itself; the device deletes one of the descendants, too.
    try await accounts.devices[0].write("DELETE FROM tasks WHERE id IN (3, 5)")
    try await accounts.expect(0, tasks, [[6, .null]])
    try await accounts.expect(0, "SELECT id FROM steps", [[4]])
    // A trigger of a program.
    try await accounts.devices[1].write("INSERT INTO tasks(id, list) VALUES (8, 3)")
    try await accounts.expect(1, "SELECT size FROM lists", [[2]])
    try await accounts.end(runs)
    for name in ["a1", "a2"] {
      #expect(try await stage.mirror(["verify", name]).output == "0 rows differ\n")
    }
    #expect(
      try stage.rows("SELECT id::text FROM tasks ORDER BY id") == [["6"], ["7"], ["8"]])
    #expect(try stage.rows("SELECT kind::text FROM ferry_mirror.captured") == [])
  }

  @Test("each device has the rows of its space, and its rows get the column's value")
  func separate() async throws {
    let accounts = try await Accounts.make(Self.tasks, "tasks")
    let stage = accounts.stage
    let ids = "SELECT id FROM tasks ORDER BY id"
    try await accounts.expect(0, ids, [[1], [4], [7]])
    try await accounts.expect(1, ids, [[2], [5], [8]])
    // The column does not reach the devices.
    #expect(try await accounts.devices[0].rows("SELECT * FROM tasks LIMIT 1") == [[1, "t1", "o1"]])
    let runs = [try stage.run("a1"), try stage.run("a2")]
    try await accounts.devices[0].write(
      "INSERT INTO tasks(id, title) VALUES (20, 'new'); UPDATE tasks SET title = 'T1' WHERE id = 1")
    try await accounts.devices[1].write("DELETE FROM tasks WHERE id = 5")
    for device in accounts.devices { try await device.exchange() }
    try await stage.eventuallyRows(
      "SELECT account::text, title FROM tasks WHERE id IN (1, 5, 20) ORDER BY id",
      [["1", "T1"], ["1", "new"]])
    // A program writes to rows of all accounts at once; one of them has no mirror.
    try stage.sql(
      """
      UPDATE tasks SET own = 'x' WHERE id <= 3;
      INSERT INTO tasks VALUES (30, 1, 'a'), (31, 2, 'b'), (32, 0, 'c'), (33, NULL, 'd')
      """)
    try await stage.quiet()
    try await accounts.expect(0, ids, [[1], [4], [7], [20], [30]])
    try await accounts.expect(
      1, "SELECT id, own FROM tasks WHERE id IN (2, 31)",
      [
        [2, "x"], [31, .null],
      ])
    try await accounts.end(runs)
    for name in ["a1", "a2"] {
      #expect(
        try await stage.mirror(["verify", name]).output == """
          tasks: 4 rows do not travel: no mirror has account 0
          tasks: 2 rows do not travel: no mirror has account NULL
          0 rows differ

          """)
    }
    // As soon as the space has a mirror, they travel.
    try await stage.mirror([
      "adopt", "a0", "--server", accounts.company.server.url, "--space", "account-0",
      "--database", stage.database, "--space-column", "account=0", "--table", "tasks",
      "--capture", "triggers",
    ])
    let third = try await accounts.device(0)
    #expect(try await third.rows(ids) == [[3], [6], [9], [32]])
    #expect(
      try await stage.mirror(["verify", "a0"]).output.hasPrefix(
        "tasks: 2 rows do not travel: no mirror has account NULL\n"))
  }

  @Test("a row whose column changes leaves one space and enters the other, also under kills")
  func moved() async throws {
    let accounts = try await Accounts.make(Self.tasks, "tasks")
    let stage = accounts.stage
    let ids = "SELECT id FROM tasks ORDER BY id"
    for round in 0..<3 {
      let runs = [try stage.run("a1"), try stage.run("a2")]
      // Out and in, in one statement and one transaction; the writes are caught at different places.
      try stage.sql(
        """
        UPDATE tasks SET account = 3 - account, title = title || '+' WHERE account IN (1, 2);
        UPDATE tasks SET account = NULL WHERE id = \(round + 1)
        """)
      try await accounts.end([runs[round % 2]], SIGKILL)
      if round == 1 {
        try await eventually("one space has them") {
          try stage.rows(
            "SELECT DISTINCT mirror::text FROM ferry_mirror.captured"
          ).count < 2
        }
      }
      try await accounts.end([runs[1 - round % 2]], SIGKILL)
    }
    let runs = [try stage.run("a1"), try stage.run("a2")]
    try await stage.quiet()
    // Three rounds: each row has changed sides.
    try await accounts.expect(0, ids, [[5], [8]])
    try await accounts.expect(1, ids, [[4], [7]])
    try await accounts.expect(0, "SELECT title FROM tasks WHERE id = 5", [["t5+++"]])
    #expect(try stage.rows("SELECT count(*)::text FROM tasks") == [["10"]])
    // Another key and another account at once.
    try stage.sql("UPDATE tasks SET id = 50, account = 2 WHERE id = 5")
    try await accounts.expect(0, ids, [[8]])
    try await accounts.expect(1, ids, [[4], [7], [50]])
    try await accounts.end(runs)
    for name in ["a1", "a2"] {
      #expect(try await stage.mirror(["verify", name]).output.hasSuffix("\n0 rows differ\n"))
    }
  }

  @Test("a device can neither read nor change nor delete a row of another space by its key")
  func foreign() async throws {
    let accounts = try await Accounts.make(Self.tasks, "tasks")
    let stage = accounts.stage
    let before = try stage.rows("SELECT t::text FROM tasks t WHERE id IN (2, 5, 8, 9) ORDER BY id")
    let runs = [try stage.run("a1"), try stage.run("a2")]
    // The device takes keys of rows in other hands: another space's, and one without a space.
    try await accounts.devices[0].write(
      "INSERT INTO tasks(id, title) VALUES (2, 'mine'), (5, 'mine'), (9, 'mine'), (40, 'good')")
    try await accounts.devices[0].exchange()
    try await stage.eventuallyRows("SELECT account::text FROM tasks WHERE id = 40", [["1"]])
    try await accounts.devices[0].write("DELETE FROM tasks WHERE id IN (5, 8)")
    try await accounts.devices[0].exchange()
    try await accounts.expect(
      0, "SELECT id, title FROM tasks ORDER BY id",
      [[1, "t1"], [4, "t4"], [7, "t7"], [40, "good"]])
    // A row leaves while its former space's device writes to it.
    try stage.sql("UPDATE tasks SET account = 2 WHERE id = 7")
    try await accounts.devices[0].write("UPDATE tasks SET title = 'late' WHERE id = 7")
    try await accounts.devices[0].exchange()
    try await accounts.expect(0, "SELECT id FROM tasks ORDER BY id", [[1], [4], [40]])
    try await accounts.expect(
      1, "SELECT id, title FROM tasks ORDER BY id",
      [[2, "t2"], [5, "t5"], [7, "t7"], [8, "t8"]])
    #expect(
      try stage.rows("SELECT t::text FROM tasks t WHERE id IN (2, 5, 8, 9) ORDER BY id") == before)
    #expect(try stage.rows("SELECT title FROM tasks WHERE id = 7") == [["t7"]])
    try await accounts.end(runs)
    for name in ["a1", "a2"] {
      #expect(try await stage.mirror(["verify", name]).output.hasSuffix("\n0 rows differ\n"))
    }
  }

  @Test("the column may be a part of the key; a device's key of another space stays out")
  func keyed() async throws {
    let accounts = try await Accounts.make(
      """
      CREATE TABLE seats(account int, place int, guest text, PRIMARY KEY(account, place));
      INSERT INTO seats SELECT i % 2 + 1, i, 'g' || i FROM generate_series(1, 4) i
      """, "seats")
    let stage = accounts.stage
    let runs = [try stage.run("a1"), try stage.run("a2")]
    try await accounts.devices[0].write(
      "INSERT INTO seats VALUES (2, 77, 'wrong'), (2, 1, 'wrong'), (1, 78, 'right')")
    try await accounts.devices[0].exchange()
    try await stage.eventuallyRows(
      "SELECT account::text, place::text, guest FROM seats ORDER BY place",
      [
        ["2", "1", "g1"], ["1", "2", "g2"], ["2", "3", "g3"], ["1", "4", "g4"],
        ["1", "78", "right"],
      ])
    _ = try await runs[0].line {
      $0.contains("returned: seats 2, 77: column account names another space: 2")
    }
    try await accounts.expect(
      0, "SELECT account, place FROM seats ORDER BY place", [[1, 2], [1, 4], [1, 78]])
    try await accounts.expect(1, "SELECT place FROM seats ORDER BY place", [[1], [3]])
    try await accounts.end(runs)
  }

  @Test("wrong columns and values are refused")
  func refused() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      "CREATE TABLE tasks(id int PRIMARY KEY, account int NOT NULL, at date); CREATE TABLE bare(id int PRIMARY KEY)"
    )
    for (table, option, reason) in [
      ("bare", "account=1", "table bare has no column account"),
      ("tasks", "at=2026-01-01", "column at of table tasks cannot name the space"),
      ("tasks", "account=x", "cannot have the value x: invalid input syntax"),
    ] {
      let failed = try await company.adopt("--table", table, "--space-column", option, exits: 1)
      #expect(failed.error.contains(reason), "\(failed.error)")
    }
    let usage = try await company.adopt("--table", "tasks", "--space-column", "account", exits: 2)
    #expect(usage.error.contains("--space-column takes COLUMN=VALUE"))
    // The value's form does not count.
    try await company.adopt("--table", "tasks", "--space-column", "account=007")
    #expect(
      try company.stage.rows("SELECT space_value FROM ferry_mirror.adopted") == [["7"]])
  }
}

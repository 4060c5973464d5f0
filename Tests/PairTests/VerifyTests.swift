import Ferry
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

/// Verification that a replica matches the server, and the repair if it does not.
@Suite(.hangLimit)
struct VerifyTests {
  @Test(
    "replicas that have synced are equal, and the comparison costs little",
    arguments: StoreKind.allCases)
  func equal(_ kind: StoreKind) async throws {
    let pair = try await Pair.make(kind)
    try await pair.one.write(Sample.notes(2_000, "note"))
    try await pair.one.write("UPDATE notes SET body = NULL WHERE n % 3 = 0")
    try await pair.one.write("DELETE FROM notes WHERE n % 5 = 0")
    try await pair.one.exchange()
    try await pair.two.exchange()
    for device in [pair.one, pair.two] {
      let report = try await device.open().verify()
      #expect(report.isEqual && report.differences.isEmpty)
      #expect(report.rowCount == 1_600)
      #expect(report.tables.map(\.serverRecords) == [1_600])
      #expect(report.bytesSent + report.bytesReceived < 1_000)
    }
    let output = try await pair.two.ferry("verify").output
    #expect(output.hasPrefix("1,600 rows of 1 table at "))
    #expect(output.hasSuffix(": equal\n"))
  }

  @Test("an unsent batch is no difference, and a repair leaves its rows as they are")
  func unsentBatch() async throws {
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'x', 1), ('b', 'y', 5), ('c', 'z', 5)")
    try await pair.one.exchange()
    try await pair.one.ferry("batch", "notes", "--where", "n = 5", "--set", "n=7")
    let found = try await pair.one.ferry("verify", "--json")
    let summary = try #require(try JSONLine.all(found.output).last)
    #expect(summary.number("differing") == 0 && summary.number("pending") == 2)
    try await pair.one.ferry("verify", "--repair")
    #expect(try await pair.one.rows("SELECT n FROM notes ORDER BY id") == [[1], [7], [7]])
    #expect(try await pair.one.ferry("conflicts", "--json").output.isEmpty)
    try await expectSettled([pair.one, pair.two], pair.server, operations: 6)
    #expect(try await pair.one.ferry("verify").output.contains("equal"))
  }

  @Test(
    "rows changed, removed and added without Ferry are reported with values, and repaired",
    arguments: StoreKind.allCases)
  func altered(_ kind: StoreKind) async throws {
    let pair = try await Pair.make(kind)
    try await pair.one.write(Sample.notes(500, "note"))
    try await pair.one.exchange()
    try await pair.two.exchange()
    try pair.two.alter(
      """
      UPDATE notes SET body = 'tampered' WHERE id = 'note-00007';
      DELETE FROM notes WHERE id = 'note-00100';
      INSERT INTO notes VALUES ('extra', 'never sent', 1)
      """)
    try await pair.two.write("UPDATE notes SET body = 'mine' WHERE id = 'note-00009'")
    let found = try await pair.two.ferry("verify", "--json", exits: 4)
    #expect(found.error.contains("ferry verify --repair"))
    let lines = try JSONLine.all(found.output)
    #expect(lines.map { $0.text("record") } == ["extra", "note-00007", "note-00100", nil])
    #expect(
      lines.map { $0.text("difference") } == ["missing there", "different", "missing here", nil])
    let column = try #require((lines[1].members["columns"] as? [[String: Any]])?.first)
    #expect(column["column"] as? String == "body")
    #expect(column["here"] as? String == "tampered")
    #expect(lines[3].number("differing") == 3 && lines[3].number("pending") == 1)

    let repaired = try await pair.two.open().verify(repair: true)
    #expect(repaired.differences.count == 3 && repaired.isEqual)
    #expect(try await pair.two.ferry("verify").output.contains("equal"))
    #expect(
      try await pair.two.value("SELECT body FROM notes WHERE id = 'note-00009'") == "mine")
    #expect(try await pair.two.status().pending == 1)
    let log = try await pair.two.open().log(limit: 20).map(\.detail)
    #expect(log.contains { $0.contains("never sent") })
    #expect(log.contains { $0.contains("tampered") })
    try await expectSettled([pair.two, pair.one], pair.server, operations: 501)
  }

  @Test("ten different rows of 100,000 are found with less than 100 KB of traffic")
  func traffic() async throws {
    let pair = try await Pair.make()
    for prefix in ["a", "b", "c", "d"] {
      try await pair.two.write(Sample.notes(25_000, prefix))
    }
    try await pair.two.exchange()
    try pair.two.alter(
      """
      UPDATE notes SET n = -1 WHERE id LIKE 'a-0777%' AND n % 2 = 0;
      DELETE FROM notes WHERE id LIKE 'b-0123%' AND n % 2 = 1
      """)
    let report = try await pair.two.open().verify()
    #expect(report.differences.count == 10)
    #expect(report.rowCount == 99_995)
    #expect(report.bytesSent + report.bytesReceived < 100_000)
  }

  @Test("values of missing columns, rejected values and local defaults are not differences")
  func kept() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(
      server.url,
      schema: "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, n INTEGER, later TEXT)")
    let two = try await Device.joined(
      server.url,
      schema: """
        CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, n REAL CHECK (n < 100),
          own TEXT DEFAULT 'own', made TEXT DEFAULT (hex(randomblob(4))))
        """)
    try await one.write("INSERT INTO notes VALUES ('a', 'x', 1, 'soon'), ('b', 'y', 100, NULL)")
    try await one.write("CREATE TABLE others(id TEXT PRIMARY KEY, v)")
    try await one.open().track("others")
    try await one.write("INSERT INTO others VALUES ('o', 1), ('p', 2)")
    try await one.exchange()
    try await two.exchange(exits: 4)
    let report = try await two.open().verify()
    #expect(report.differences == [])
    #expect(report.rowCount == 2)
    #expect(report.untracked == [UntrackedTable(table: "others", serverRecords: 2)])
    #expect(try await one.open().verify().differences == [])
    try two.alter("UPDATE notes SET own = 'other' WHERE id = 'a'")
    let altered = try await two.open().verify(repair: true)
    #expect(altered.differences.map(\.key.record) == ["a"])
    #expect(altered.isEqual)
    #expect(try await two.value("SELECT own FROM notes WHERE id = 'a'") == "own")
  }

  @Test(
    "a comparison ends and finds nothing while other devices write", arguments: StoreKind.allCases)
  func busy(_ kind: StoreKind) async throws {
    let pair = try await Pair.make(kind)
    try await pair.one.write(Sample.notes(3_000, "note"))
    try await pair.one.exchange()
    try await pair.two.exchange()
    let writer = Task {
      let replica = try await pair.one.open()
      for round in 0..<25 {
        try await replica.write { database in
          try database.execute(
            """
            UPDATE notes SET n = n + 1 WHERE n % 25 = \(round);
            DELETE FROM notes WHERE id = 'note-0\(1_000 + round)';
            INSERT INTO notes VALUES ('new-\(round)', 'x', 0)
            """)
        }
        try await replica.sync()
      }
    }
    let replica = try await pair.two.open()
    for _ in 0..<5 {
      try await replica.write { _ = try $0.execute("UPDATE notes SET body = 'b' WHERE n = 77") }
      #expect(try await replica.verify().differences == [])
    }
    try await writer.value
    try await replica.sync()
    #expect(try await replica.verify().differences == [])
  }

  @Test("if the server is away, verify exits with 3; a new replica is empty and equal")
  func edges() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    #expect(try await device.open().verify().isEqual)
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    let report = try await device.open().verify()
    #expect(report.isEqual && report.pending == 1 && report.rowCount == 0)
    try await server.kill()
    try await device.ferry("verify", exits: 3)
  }
}

extension Device {
  /// Changes the file like a program that does not know Ferry and removes the triggers.
  fileprivate func alter(_ sql: String) throws {
    let connection = try SQLiteConnection(path: path)
    try connection.transaction {
      let triggers = try connection.prepare(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
      ).rows { ($0.text(0), $0.text(1)) }
      for (name, _) in triggers { try connection.execute("DROP TRIGGER \"\(name)\"") }
      try connection.execute(sql)
      for (_, sql) in triggers { try connection.execute(sql) }
    }
  }
}

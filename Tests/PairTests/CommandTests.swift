import Ferry
import FerryTestSupport
import Foundation
import Testing

/// The command `ferry` end to end: the output and the exit status.
@Suite(.hangLimit)
struct CommandTests {
  @Test("each command has a help text, and unknown words are wrong usage")
  func help() async throws {
    let device = try Device()
    let commands = [
      "init", "join", "leave", "spaces", "track", "untrack", "rename", "import", "sql", "batch",
      "push", "pull", "sync",
      "status",
      "pending", "to-apply", "log", "verify", "uploads", "retry", "quarantine", "schema",
    ]
    let overview = try await device.ferry("--help").output
    for command in commands {
      #expect(overview.contains("\n  \(command) "))
      let help = try await device.ferry(command, "--help").output
      #expect(help.contains("ferry \(command)"))
      #expect(help.contains("json"))
      #expect(help.split(separator: "\n").count > 8, "\(command)")
    }
    #expect(try await device.ferry("--version").output.hasPrefix("ferry "))
    for arguments in [
      ["dance"], ["sync", "--dance"], ["init"], ["undo"], ["log", "--limit", "0"],
    ] {
      let wrong = try await ChildProcess.run(try Executables.ferry(), arguments)
      #expect(wrong.status == .exited(2), "\(arguments)")
      #expect(wrong.error.contains("next: "), "\(arguments)")
    }
    #expect(!FileManager.default.fileExists(atPath: device.path))
  }

  @Test(
    "the output of shell completion is a script that its shell can parse",
    arguments: ["bash", "zsh", "fish"])
  func completion(_ shell: String) async throws {
    let device = try Device()
    let script = try await device.ferry("completion", shell).output
    let replica = shell == "fish" ? "-l replica" : "--replica"
    for word in ["to-apply", "watch", replica, "import"] { #expect(script.contains(word)) }
    #expect(script.contains(shell == "zsh" ? "#compdef ferry" : "complete -"))
    let program = URL(filePath: "/usr/bin/\(shell)")
    guard FileManager.default.isExecutableFile(atPath: program.path) else { return }
    let check = try await ChildProcess.run(program, ["-n"], input: script)
    #expect(check.status == .exited(0), "\(check.error)")
  }

  @Test("tables, spaces and missions are completed from the file that the line names")
  func names() async throws {
    let directory = try TemporaryDirectory()
    let ferry = try Executables.ferry()
    func run(_ arguments: [String]) async throws -> String {
      let finished = try await ChildProcess.run(
        ferry, arguments, environment: [:], directory: directory.url)
      #expect(finished.status == .exited(0), "\(finished.error)")
      return finished.output
    }
    #expect(try await run(["names", "tables", "--", "ferry", "track"]) == "")
    #expect(!FileManager.default.fileExists(atPath: directory.file("ferry.db").path))
    let file = directory.file("other.db").path
    _ = try await run([
      "--replica", file, "sql",
      "CREATE TABLE \"two words\"(id TEXT PRIMARY KEY); CREATE TABLE notes(id TEXT PRIMARY KEY); "
        + "CREATE TABLE \"a\nb\"(id TEXT PRIMARY KEY)",
    ])
    _ = try await run([
      "--replica", file, "init", "--offline", "--server", "http://127.0.0.1:1", "--space", "demo",
    ])
    for words in [
      ["--replica", file], ["-r", file], ["--replica=\(file)"], ["--replica", "=", file],
    ] {
      let line = ["--", "ferry"] + words + ["track", "n"]
      #expect(try await run(["names", "tables"] + line) == "notes\ntwo words\n", "\(words)")
      #expect(try await run(["names", "spaces"] + line) == "demo\n")
      #expect(try await run(["names", "missions"] + line) == "")
    }
  }

  @Test("the replica is ./ferry.db unless FERRY_REPLICA or --replica names another one")
  func replicaFile() async throws {
    let directory = try TemporaryDirectory()
    let ferry = try Executables.ferry()
    func run(_ arguments: [String], _ environment: [String: String]) async throws {
      let finished = try await ChildProcess.run(
        ferry, arguments, environment: environment, directory: directory.url)
      #expect(finished.status == .exited(0), "\(finished.error)")
    }
    let named = directory.file("named.db").path
    try await run(["sql", "CREATE TABLE a(x)"], [:])
    try await run(["sql", "CREATE TABLE b(x)"], ["FERRY_REPLICA": named])
    try await run(
      ["--replica", directory.file("given.db").path, "sql", "CREATE TABLE c(x)"],
      ["FERRY_REPLICA": named])
    for (file, table) in [("ferry.db", "a"), ("named.db", "b"), ("given.db", "c")] {
      let replica = try await Replica.open(directory.file(file).path)
      let tables = try await replica.read {
        try $0.query(
          "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'ferry%' AND type = 'table'")
      }
      #expect(tables.map(\.values).contains([.text(table)]), "\(file)")
    }
  }

  @Test("commands that only read do not create a replica")
  func noReplica() async throws {
    let device = try Device()
    for command in ["status", "pending", "to-apply", "log", "sync", "push", "pull"] {
      let failed = try await device.ferry(command, exits: 1)
      #expect(failed.error.contains("there is no replica at"))
    }
    #expect(!FileManager.default.fileExists(atPath: device.path))
  }

  @Test("statements of one command are one transaction, and rows are a table or JSON lines")
  func sql() async throws {
    let device = try Device()
    let made = try await device.ferry("sql", Device.notes)
    #expect(made.error == "0 rows changed\n")
    try await device.ferry("track", "notes")
    let failed = try await device.ferry(
      "sql", "INSERT INTO notes VALUES ('a', 'x', 1); INSERT INTO nowhere VALUES (1)", exits: 1)
    #expect(failed.error.contains("no such table: nowhere"))
    #expect(try await device.count() == 0)
    try await device.ferry(
      "sql", "-",
      input: "INSERT INTO notes VALUES ('a', 'x', 1);\nINSERT INTO notes VALUES ('b', NULL, 2);\n")
    let groups = try JSONLine.all(try await device.ferry("pending", "--json").output)
      .map { $0.number("transaction") }
    #expect(groups.count == 2 && Set(groups).count == 1)
    let rows = try await device.ferry(
      "sql", "--json", "SELECT *, x'00ff' AS raw, 9007199254740993 AS big FROM notes ORDER BY id")
    #expect(
      rows.output == """
        {"id":"a","body":"x","n":1,"raw":{"blob":"AP8="},"big":9007199254740993}
        {"id":"b","body":null,"n":2,"raw":{"blob":"AP8="},"big":9007199254740993}

        """)
    let table = try await device.ferry("sql", "SELECT id, body FROM notes ORDER BY id").output
    #expect(table.contains("id") && table.contains("NULL"))
  }

  @Test("each statement of a script prints its result, and an empty one is shown as such")
  func scripts() async throws {
    let device = try Device()
    let script = try await device.ferry(
      "sql",
      """
      CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'x'), (2, 'y');
      SELECT a FROM t; UPDATE t SET b = 'z' WHERE a = 1; SELECT b FROM t WHERE a > 2;
      SELECT a, b FROM t; -- the end
      """)
    #expect(
      script.output == """
        a
        ─
        1
        2

        b
        ─

        a  b
        ─  ─
        1  z
        2  y

        """)
    #expect(script.error == "0 rows\n3 rows changed\n")
    let empty = try await device.ferry("sql", "SELECT a, b FROM t WHERE a = 7")
    #expect(empty.output == "a  b\n─  ─\n" && empty.error == "0 rows\n")
    let emptyJSON = try await device.ferry("sql", "--json", "SELECT a FROM t WHERE a = 7")
    #expect(emptyJSON.output.isEmpty && emptyJSON.error.isEmpty)
    let json = try await device.ferry(
      "sql", "--json", "SELECT a FROM t; DELETE FROM t WHERE a = 1; SELECT b FROM t WHERE a = 1")
    #expect(
      json.output == """
        [{"columns":["a"],"rows":[{"a":1},{"a":2}],"changes":0},\
        {"columns":[],"rows":[],"changes":1},{"columns":["b"],"rows":[],"changes":0}]

        """)
    let returning = try await device.ferry("sql", "INSERT INTO t VALUES (3, 'n') RETURNING a")
    #expect(returning.output == "a\n─\n3\n" && returning.error.isEmpty)
  }

  @Test("without statements and a terminal, standard input is read")
  func standardInput() async throws {
    let device = try Device()
    let piped = try await device.ferry("sql", input: "SELECT 6 * 7 AS answer;\n")
    #expect(piped.output == "answer\n──────\n    42\n")
    let nothing = try await device.ferry("sql", input: "")
    #expect(nothing.output.isEmpty && nothing.error == "0 rows changed\n")
  }

  @Test("init, status, pending, push, pull, sync and log answer in the documented JSON")
  func json() async throws {
    let server = try await Server.start()
    let device = try Device()
    try await device.ferry("sql", Device.notes)
    #expect(
      try JSONLine.all(try await device.ferry("track", "notes", "--json").output).last?.names
        == ["tables", "pending", "keys"])
    let early = try await device.ferry("push", exits: 2)
    #expect(early.error.contains("has no server yet"))
    let joined = try await device.ferry(
      "init", "--server", server.url, "--space", "demo", "--json")
    #expect(
      try JSONLine.all(joined.output).last?.names == [
        "replica", "device", "name", "server", "space", "role", "head",
      ])
    try await device.ferry("sql", "INSERT INTO notes VALUES ('a', 'x', 1)")
    let listed = try JSONLine.all(try await device.ferry("pending", "--json").output)
    let pending = try #require(listed.first)
    #expect(pending.text("record") == "a" && pending.text("kind") == "insert")
    #expect(pending.object("data").text("body") == "x")
    #expect(pending.text("dependency") == nil)
    let status = try await status(device)
    #expect(
      status.names.isSuperset(of: [
        "device", "name", "space", "server", "pending", "toApply", "conflicts", "deferred",
        "quarantined", "buffered", "cursor", "head", "lastSync", "clockOffset",
      ]))
    #expect(status.number("pending") == 1 && status.text("space") == "demo")
    for (command, pushed) in [("pull", 0), ("push", 1), ("sync", 0)] {
      let output = try await device.ferry(command, "--json").output
      let lines = try JSONLine.all(output)
      let last = try #require(lines.last)
      #expect(
        last.names.isSuperset(of: ["pushed", "pulled", "duplicates", "buffered", "cursor"]))
      #expect(last.number("pushed") == pushed, "\(command)")
      #expect(last.text("cursor") != nil, "\(command)")
    }
    let after = try await self.status(device)
    #expect(after.number("pending") == 0 && after.number("head") == 1)
    #expect(after.text("lastSync") != nil)
    try await device.ferry("sql", "UPDATE notes SET n = 2; INSERT INTO notes VALUES ('b', 'y', 1)")
    let later = try JSONLine.all(try await device.ferry("pending", "--json").output)
    #expect(
      later.map { $0.text("dependency") }
        == [pending.text("operation"), later.first?.text("operation")])
    // SQL has the same.
    let rows = try await device.rows(
      "SELECT operation, dependency, record, kind, time FROM ferry_pending ORDER BY seq")
    let columns = ["operation", "dependency", "record", "kind", "time"]
    let shown = later.map { line in
      columns.map { column in line.text(column).map(Value.text) ?? Value.null }
    }
    #expect(rows == shown)
  }

  @Test("init sets the server without a network, and the first sync makes the first contact")
  func offline() async throws {
    let server = try await Server.start()
    let device = try Device()
    try await device.ferry("sql", Device.notes)
    try await device.ferry("track", "notes")
    let nowhere = "http://127.0.0.1:1"
    let failed = try await device.ferry("init", "--server", nowhere, "--space", "demo", exits: 3)
    #expect(failed.error.contains("add --offline"))
    #expect(try await device.status().server == nil)
    let set = try await device.ferry(
      "init", "--offline", "--server", server.url, "--space", "demo", "--json")
    let line = try #require(try JSONLine.all(set.output).last)
    #expect(line.text("space") == "demo" && line.text("role") == nil)
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    #expect(try await device.exchange().pushed == 1)
    let shown = try await device.ferry(
      "init", "--offline", "--server", server.url, "--space", "demo")
    #expect(shown.output.contains("the server was not asked"))
    let bad = try await device.ferry(
      "init", "--offline", "--server", server.url, "--space", "no/name", exits: 1)
    #expect(bad.error.contains("no/name"))
    #expect(try await device.exchange().pushed == 0)
  }

  @Test("records that the local tables reject are exit status 4, listed, and applied after repair")
  func refusedRecords() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(server.url)
    let two = try await Device.joined(
      server.url,
      schema: "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, n INTEGER CHECK (n < 100))")
    try await one.write("INSERT INTO notes VALUES ('good', 'x', 1), ('bad', 'y', 100)")
    try await one.exchange()
    let report = try await two.exchange(exits: 4)
    #expect((report.pulled, report.refused) == (1, 1))
    #expect(try await two.rows() == [["good", "x", 1]])
    let waiting = try JSONLine.all(try await two.ferry("to-apply", "--json").output)
    #expect(waiting.map { $0.text("record") } == ["bad"])
    #expect(waiting.first?.text("reason")?.contains("CHECK") == true)
    #expect(waiting.first?.text("time") != nil && waiting.first?.text("dependency") == nil)
    // SQL has the same.
    let columns = "operation, tbl, record, kind, time, reason"
    let rows = try await two.rows("SELECT \(columns) FROM ferry_to_apply")
    let shown = try #require(waiting.first)
    let texts: [Value] = ["table", "record", "kind", "time", "reason"].map { name in
      shown.text(name).map(Value.text) ?? .null
    }
    let number: Value = .integer(Int64(shown.number("operation") ?? 0))
    #expect(rows == [[number] + texts])
    #expect(try await status(two).number("deferred") == 1)
    let again = try await two.ferry("sync", exits: 4)
    #expect(again.error.contains("ferry to-apply"))
    try await one.write("UPDATE notes SET n = 99 WHERE id = 'bad'")
    try await one.exchange()
    #expect(try await two.exchange().refused == 0)
    #expect(try await status(two).number("deferred") == 0)
    try await expectEqual([one, two])
  }

  @Test("changes of an absent table are kept, and applied when track --create creates it")
  func createFromPulled() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(server.url)
    try await one.write("INSERT INTO notes VALUES ('a', 'x', 1), ('b', NULL, 2)")
    try await one.exchange()
    let two = try Device()
    try await two.ferry("init", "--server", server.url, "--space", "demo")
    let waiting = try await two.ferry("sync").error
    #expect(waiting.contains("2 changes wait for tables or columns that are not tracked here"))
    #expect(waiting.contains("`ferry track --create notes`"))
    #expect(try JSONLine.all(try await two.ferry("to-apply", "--json").output).count == 2)
    try await two.ferry("track", "notes", "--create")
    #expect(try await two.status().toApply == 0)
    #expect(try await two.rows("SELECT id, body, n FROM notes ORDER BY id") == one.rows())
    #expect(try await two.exchange().pushed == 0)
  }

  private func status(_ device: Device) async throws -> JSONLine {
    let lines = try JSONLine.all(try await device.ferry("status", "--json").output)
    return try #require(lines.last)
  }
}

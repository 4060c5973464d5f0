import FerryConformance
import FerryLaboratory
import FerryPostgres
import Foundation
import Synchronization

/// A company's database with a program on it, and the mirror of its tables in the space.
final class Company: Sendable {
  static let mirror = "shop"

  /// The URL of the company's database itself.
  let database: String
  let mirrorRuns: Supervisor
  let program: Supervisor
  /// The mirror's replica.
  let replica: DeviceFile
  /// The proxies between the mirror and the server, the mirror and PostgreSQL, and the program and
  /// PostgreSQL.
  let toServer: TCPProxy
  let toTables: TCPProxy
  let programToTables: TCPProxy
  private let capture: RoundPlan.Capture
  private let journal: URL
  private let folder: String
  private let script: URL
  /// The interpreter of the program.
  private let python: URL
  /// The interpreter with Django, and the company's database behind the program's proxy.
  private let django: (python: URL, database: String)?
  private let initial = Mutex<Set<RowName>>([])
  /// A position in PostgreSQL's log behind the program's last commit; `nil` before it.
  private let end = Mutex<String?>(nil)

  /// Makes everything without starting it. Blocks.
  init(
    _ plan: RoundPlan.Program, database: String, directory: URL, node: UInt16,
    _ chronicle: Chronicle
  ) throws {
    let script = try ExampleFiles.find("Backend/backend.py")
    let target = try Self.port(of: database)
    let (toTables, programToTables) = (try TCPProxy(to: target), try TCPProxy(to: target))
    let proxied = try Self.url(database, at: programToTables.port)
    let python = plan.django.map { URL(filePath: $0) } ?? ExampleFiles.python
    django = plan.django.map { (URL(filePath: $0), proxied) }
    let folder = directory.appending(path: "mirrors").path
    let journal = directory.appending(path: "program.journal")
    mirrorRuns = Supervisor(
      Supervisor.Program(
        name: "mirror", executable: try Executables.ferryd(),
        arguments: ["mirror", "run", Self.mirror, "--mirrors", folder]), chronicle)
    program = Supervisor(
      Supervisor.Program(
        name: "program", executable: python,
        arguments: [
          script.path, "--database", proxied,
          "--workers", "\(plan.workers)", "--rate", "\(plan.rate)", "--journal", journal.path,
        ]), chronicle)
    replica = DeviceFile(path: "\(folder)/\(Self.mirror)/replica.db")
    toServer = try TCPProxy(to: node)
    capture = plan.capture
    (self.toTables, self.programToTables) = (toTables, programToTables)
    (self.database, self.folder, self.journal, self.script) = (database, folder, journal, script)
    self.python = python
  }

  private static func port(of database: String) throws -> UInt16 {
    guard let port = URLComponents(string: database)?.port.flatMap(UInt16.init) else {
      throw ChaosError("\(database) names no port")
    }
    return port
  }

  private static func url(_ database: String, at port: UInt16) throws -> String {
    var url = URLComponents(string: database)
    url?.port = Int(port)
    return url?.string ?? database
  }

  // MARK: Setting up

  /// Creates the tables with some rows.
  func create() async throws {
    try await ExampleFiles.checkPython(python, with: "psycopg")
    _ = try await run("--create")
    let names = try await blocking { [self] in Set(try rows().keys) }
    initial.withLock { $0 = names }
  }

  /// The rows from before the first write.
  var initialRows: Set<RowName> { initial.withLock { $0 } }

  /// Makes the tables those of the space.
  func adopt(_ space: String) async throws {
    let tables = ShopBooks.tables.flatMap { ["--table", $0.name] }
    let adopted = try await mirror(
      ["adopt"],
      [
        "--server", toServer.url, "--space", space, "--database",
        try Self.url(database, at: toTables.port), "--capture", capture.rawValue,
      ] + tables)
    guard adopted.status == .exited(0) else {
      throw ChaosError("the tables were not adopted: \(adopted.error)\(adopted.output)")
    }
  }

  private func mirror(
    _ command: [String], _ options: [String] = []
  ) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(
      mirrorRuns.program.executable,
      ["mirror"] + command + [Self.mirror, "--mirrors", folder] + options)
  }

  /// Returns the migrations of the tables; `nil` without them.
  func migrator(
    seed: UInt64, _ collector: Collector, _ chronicle: Chronicle
  ) -> Migrator? {
    django.map { python, database in
      Migrator(
        python: python, database: database, seed: seed, collector: collector,
        chronicle: chronicle)
    }
  }

  /// Runs the program to the end. Returns the output.
  private func run(_ option: String) async throws -> String {
    let ended = try await ChildProcess.run(
      python, [script.path, "--database", database, option])
    guard ended.status == .exited(0) else {
      throw ChaosError(
        "backend.py \(option) ended with \(ended.status): \(ended.error)\(ended.output)")
    }
    return ended.output
  }

  /// The rules of the space, a document for `ferry schema apply`.
  var spaceRules: URL { script.deletingLastPathComponent().appending(path: "space.json") }

  // MARK: Evidence

  /// Returns the reason if the mirror has work; `nil` if it is done. Blocks.
  func laggard(head: Int64) throws -> String? {
    let progress = try replica.progress()
    let (captured, applied, sessions) = try withDatabase { connection in
      let row = try connection.query(
        .once(
          """
          SELECT (SELECT count(*) FROM ferry_mirror.captured),
            (SELECT min(applied) FROM ferry_mirror.mirrors),
            (SELECT count(*) FROM pg_stat_activity WHERE application_name IN ('shop', 'migrations'))
          """)
      )[0]
      return (try row.int8(0), try row.int8(1), try row.int8(2))
    }
    // A commit of the program may still be under way.
    if sessions > 0 { return "PostgreSQL has \(sessions) connections of the program" }
    if capture == .log, try !withDatabase(hasReadLog) { return "the mirror reads the log" }
    if captured == 0, applied == head, progress == DeviceFile.Progress(pending: 0, applied: head) {
      return nil
    }
    return "the mirror has \(progress.pending) pending and \(captured) captured writes, applied "
      + "\(progress.applied) and brought \(applied) of \(head)"
  }

  /// Returns `true` if the mirror has read the log behind the program's last commit. The mirror
  /// stores positions only behind writes, so the first call makes one without an effect.
  private func hasReadLog(_ connection: PostgresConnection) throws -> Bool {
    let last = try end.withLock { end in
      if let end { return end }
      let found = try connection.query(.once("SELECT pg_current_wal_insert_lsn()::text"))[0]
      try connection.execute(single: "UPDATE products SET name = name")
      let position = try found.text(0)
      end = position
      return position
    }
    return try connection.query(
      .once("SELECT coalesce(min(lsn) > $1::text::pg_lsn, false) FROM ferry_mirror.logs"),
      [.text(last)]
    )[0].bool(0)
  }

  /// Compares all rows with the space's, as an administrator does it; the mirror must not run.
  /// Returns the faults.
  func verify() async throws -> [Violation] {
    var found: [Violation] = []
    let verified = try await mirror(["verify"])
    // Rows refused by the space are counted before it.
    if verified.output.split(separator: "\n").last != "0 rows differ" {
      found.append(
        Violation(oracle: "mirror-verify", verified.output + verified.error))
    }
    let report = try await ChildProcess.run(
      python, [script.path, "--database", database, "--report"])
    if report.status != .exited(0) {
      found.append(Violation(oracle: "program-report", report.output + report.error))
    }
    return found
  }

  /// Reads the program's journal. Blocks.
  func readJournal() throws -> ProgramJournal {
    guard FileManager.default.fileExists(atPath: journal.path) else {
      return ProgramJournal("", author: "program")
    }
    return ProgramJournal(
      String(decoding: try Data(contentsOf: journal), as: UTF8.self), author: "program")
  }

  /// Returns the rows of all tables. Blocks.
  func rows() throws -> NamedRows {
    try withDatabase { connection in
      var rows: NamedRows = [:]
      for table in ShopBooks.tables {
        for row in try connection.query(.once(table.postgresQuery)) {
          var values: [String: String] = [:]
          for (index, column) in zip(1..., table.columns) {
            values[column] = try row.ifPresent(index, as: String.self)
          }
          rows[RowName(table.name, try row.text(0))] = values
        }
      }
      return rows
    }
  }

  /// Returns the rows that one side cannot hold, as the mirror lists them. Blocks.
  func listed(_ table: String) throws -> Set<RowName> {
    try withDatabase { connection in
      Set(
        try connection.query(
          .once("SELECT tab, array_to_string(key, '/') FROM ferry_mirror.\(table)")
        ).map { RowName(try $0.text(0), try $0.text(1)) })
    }
  }

  private func withDatabase<T>(_ body: (PostgresConnection) throws -> T) throws -> T {
    try body(try PostgresConnection(url: database))
  }
}

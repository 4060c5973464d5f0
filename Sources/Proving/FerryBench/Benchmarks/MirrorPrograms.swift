import FerryLaboratory
import FerryPostgres
import Foundation

extension Benchmark {
  /// The cost of a mirror for the programs that write to the tables.
  static let mirrorPrograms = Benchmark(
    name: "mirror-programs",
    summary: "The writes of 8 programs to a mirrored table, row by row and in large statements."
  ) { context in
    let contest = Contest(rounds: context.size(3, quick: 1), context: context)
    let kinds: [(spaces: Int, capture: String)] = [
      (1, "triggers"), (1, "log"), (context.size(200, quick: 20), "triggers"),
      (context.size(200, quick: 20), "log"),
    ]
    let writes = ProgramWrites.allCases.count
    context.begin(
      "mirrors: programs", "steps",
      total: kinds.count * (1 + writes * contest.steps(contestants: 2)))
    var found: [Measurement] = []
    for (count, capture) in kinds {
      let stage = try await ProgramStage.make(context, spaces: count, capture: capture)
      context.advance()
      do {
        for writes in ProgramWrites.allCases {
          let size = context.size(writes.size, quick: writes.size / 4)
          let rates = try await contest.medians([
            { try await stage.rate(of: writes, size, in: "notes") },
            { try await stage.rate(of: writes, size, in: "plain") },
          ])
          found.append(
            Measurement(
              name:
                "\(writes.rawValue), \(count == 1 ? "a mirror" : "\(count) spaces"), \(capture)",
              figure: Amount(rates[0], .perSecond("rows")),
              raw: Amount(rates[1], .perSecond("rows")),
              target: .ratioAtLeast(capture == "log" ? 0.95 : writes.isBulk ? 0.4 : 0.5),
              notes: [
                "\(size) rows, \(writes.isBulk ? "in one statement" : "each in a transaction")",
                "raw: the same on a table without mirrors",
              ]))
        }
        try await stage.end()
      } catch {
        try? await stage.end()
        throw error
      }
    }
    return found
  }
}

/// Writes of programs, in an order in which each finds the rows of the one before.
private enum ProgramWrites: String, CaseIterable {
  case inserts = "8 programs insert single rows"
  case updates = "8 programs update single rows"
  case deletes = "8 programs delete single rows"
  case bulkInsert = "a program inserts many rows"
  case bulkUpdate = "a program updates many rows"
  case bulkDelete = "a program deletes many rows"

  var isBulk: Bool { [.bulkInsert, .bulkUpdate, .bulkDelete].contains(self) }

  var size: Int { isBulk ? 20_000 : 4_000 }
}

/// A server, and the mirrors of a table in a separate process.
private final class ProgramStage {
  private static let programs = 8

  private let daemon: Daemon
  private let directory: TemporaryDirectory
  private let mirror: ChildProcess
  private let pool: PostgresPool
  private let spaces: Int

  /// Adopts a table with a row of each space.
  static func make(
    _ context: BenchmarkContext, spaces: Int, capture: String
  ) async throws -> ProgramStage {
    let daemon = try await Daemon.start(database: try context.makeDatabase())
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let database = try context.makeDatabase()
    let connection = try PostgresConnection(url: database)
    for table in ["notes", "plain"] {
      try connection.execute(
        "CREATE TABLE \(table)(id bigint PRIMARY KEY, account_id bigint NOT NULL, title text)")
    }
    try connection.execute(
      "INSERT INTO notes SELECT -n, n, 'note ' || n FROM generate_series(1, \(spaces)) AS n")
    let folder = ["--mirrors", directory.file("mirrors").path]
    let names =
      spaces == 1
      ? ["--space", "account"] : ["--space-column", "account_id", "--space-name", "account-{}"]
    let adopted = try await ChildProcess.run(
      try Executables.ferryd(),
      [
        "mirror", "adopt", "all", "--server", daemon.url, "--database", database, "--table",
        "notes", "--capture", capture,
      ] + names + folder, within: .seconds(600))
    guard adopted.status == .exited(0) else { throw BenchError(adopted.error) }
    let mirror = try ChildProcess(try Executables.ferryd(), ["mirror", "run", "all"] + folder)
    for _ in 0..<spaces {
      _ = try await mirror.line(within: .seconds(600)) { $0.contains("a mirror runs") }
    }
    return ProgramStage(
      daemon, directory, mirror, try PostgresPool(url: database, connections: programs), spaces)
  }

  private init(
    _ daemon: Daemon, _ directory: TemporaryDirectory, _ mirror: ChildProcess,
    _ pool: PostgresPool, _ spaces: Int
  ) {
    (self.daemon, self.directory, self.mirror) = (daemon, directory, mirror)
    (self.pool, self.spaces) = (pool, spaces)
  }

  func end() async throws {
    await pool.close()
    mirror.send(SIGTERM)
    _ = try await mirror.exitStatus(within: .seconds(60))
    // PostgreSQL would keep the log.
    let removed = try await ChildProcess.run(
      try Executables.ferryd(),
      ["mirror", "remove", "all", "--mirrors", directory.file("mirrors").path],
      within: .seconds(600))
    guard removed.status == .exited(0) else { throw BenchError(removed.error) }
    try await daemon.stop()
  }

  /// Writes rows, and waits until the spaces have them. Returns the rate of the writes alone.
  func rate(of writes: ProgramWrites, _ size: Int, in table: String) async throws -> Double {
    let (pool, spaces) = (pool, spaces)
    // A round of another contestant may have left rows, or none.
    try await pool.run { connection in
      let isNeeded = writes != .inserts && writes != .bulkInsert
      try connection.execute(
        """
        DELETE FROM \(table) WHERE id > 0;
        INSERT INTO \(table) SELECT n, n % \(spaces) + 1, 'title' FROM generate_series(1, \(size)) n
          WHERE \(isNeeded)
        """)
    }
    try await rest()
    let watch = Stopwatch()
    if writes.isBulk {
      try await pool.run { try $0.execute(Self.statement(writes, table, spaces, size)) }
    } else {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for program in 0..<Self.programs {
          group.addTask {
            try await pool.run { connection in
              let statement = PostgresStatement(
                "program_\(table)_\(writes)", Self.statement(writes, table, spaces))
              for id in stride(from: program + 1, through: size, by: Self.programs) {
                _ = try connection.query(statement, [.int8(Int64(id))])
              }
            }
          }
        }
        try await group.waitForAll()
      }
    }
    let seconds = watch.seconds
    try await rest()
    return Double(size) / seconds
  }

  /// Waits until the log is read, if the mirror reads it, and the spaces have all captured writes.
  private func rest() async throws {
    let end = try await pool.run {
      try $0.query(.once("SELECT pg_current_wal_lsn()::text")).first?.text(0) ?? "0/0"
    }
    while try await pool.run({
      try !$0.query(
        .once(
          """
          SELECT FROM ferry_mirror.captured UNION ALL SELECT FROM pg_replication_slots
          WHERE database = current_database() AND confirmed_flush_lsn < $1::text::pg_lsn LIMIT 1
          """), [.text(end)]
      ).isEmpty
    }) {
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  private static func statement(
    _ writes: ProgramWrites, _ table: String, _ spaces: Int, _ size: Int = 0
  ) -> String {
    switch writes {
    case .inserts: "INSERT INTO \(table) VALUES ($1, $1 % \(spaces) + 1, 'title')"
    case .updates: "UPDATE \(table) SET title = title || '!' WHERE id = $1"
    case .deletes: "DELETE FROM \(table) WHERE id = $1"
    case .bulkInsert:
      """
      INSERT INTO \(table) SELECT n, n % \(spaces) + 1, 'title' FROM generate_series(1, \(size)) n
      """
    case .bulkUpdate: "UPDATE \(table) SET title = title || '!' WHERE id > 0"
    case .bulkDelete: "DELETE FROM \(table) WHERE id > 0"
    }
  }
}

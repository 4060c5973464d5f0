import FerryLaboratory
import FerryPostgres
import Foundation

extension Benchmark {
  /// The commits of programs that write to a mirrored table at the same time.
  static let mirrorWriters = Benchmark(
    name: "mirror-writers",
    summary: "Commits a second of 8 programs on a table without a mirror, and with each capture."
  ) { context in
    let count = context.size(4_000, quick: 800)
    let contest = Contest(rounds: context.size(5, quick: 2), context: context)
    context.begin("mirrors: writers", "steps", total: contest.steps(contestants: 3))
    let daemon = try await Daemon.start(database: try context.makeDatabase())
    let stages = [
      try await MirrorWritersStage.make(context, daemon, "log"),
      try await MirrorWritersStage.make(context, daemon, "triggers"),
      try await MirrorWritersStage.make(context, daemon, nil),
    ]
    let rates = try await contest.medians(
      stages.map { stage in { Double(count) / (try await stage.insert(count)) } })
    for stage in stages { try await stage.end() }
    try await daemon.stop()
    let notes = [
      "\(MirrorWritersStage.clients) connections, a row in each transaction",
      "raw: the same transactions on a table without a mirror",
    ]
    return zip(["log", "triggers"], rates).map { capture, rate in
      Measurement(
        name: "programs' commits, captured by \(capture)",
        figure: Amount(rate, .perSecond("commits")), raw: Amount(rates[2], .perSecond("commits")),
        notes: notes)
    }
  }
}

/// A table in a database of its own, with a mirror in a separate process, or without one.
private final class MirrorWritersStage {
  static let clients = 8

  private let pool: PostgresPool
  private let directory: TemporaryDirectory
  private let mirror: ChildProcess?
  private var rows = 0

  private init(_ pool: PostgresPool, _ directory: TemporaryDirectory, _ mirror: ChildProcess?) {
    (self.pool, self.directory, self.mirror) = (pool, directory, mirror)
  }

  /// - Parameter capture: how the mirror captures; `nil` for no mirror.
  static func make(
    _ context: BenchmarkContext, _ daemon: Daemon, _ capture: String?
  ) async throws -> MirrorWritersStage {
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let database = try context.makeDatabase()
    let pool = try PostgresPool(url: database, connections: clients)
    try await pool.run {
      try $0.execute("CREATE TABLE notes(id bigint PRIMARY KEY, title text, done boolean)")
    }
    guard let capture else { return MirrorWritersStage(pool, directory, nil) }
    let folder = ["--mirrors", directory.file("mirrors").path]
    let adopted = try await ChildProcess.run(
      try Executables.ferryd(),
      [
        "mirror", "adopt", "notes", "--server", daemon.url, "--space", "by-\(capture)",
        "--database", database, "--table", "notes", "--capture", capture,
      ] + folder, within: .seconds(600))
    guard adopted.status == .exited(0) else { throw BenchError(adopted.error) }
    let mirror = try ChildProcess(
      try Executables.ferryd(), ["mirror", "run", "notes"] + folder)
    _ = try await mirror.line(within: .seconds(600)) { $0.contains("a mirror runs") }
    return MirrorWritersStage(pool, directory, mirror)
  }

  func end() async throws {
    if let mirror {
      mirror.send(SIGTERM)
      _ = try await mirror.exitStatus(within: .seconds(60))
      // PostgreSQL would keep the log.
      let removed = try await ChildProcess.run(
        try Executables.ferryd(),
        ["mirror", "remove", "notes", "--mirrors", directory.file("mirrors").path])
      guard removed.status == .exited(0) else { throw BenchError(removed.error) }
    }
    await pool.close()
  }

  /// Inserts rows, each in a transaction of one of the programs. Returns seconds.
  func insert(_ count: Int) async throws -> Double {
    let (pool, first) = (pool, rows)
    let share = count / Self.clients
    rows += count
    let watch = Stopwatch()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for client in 0..<Self.clients {
        group.addTask {
          try await pool.run { connection in
            for number in 0..<share {
              _ = try connection.query(
                PostgresStatement("insert", "INSERT INTO notes VALUES ($1, $2, false)"),
                [.int8(Int64(first + client * share + number)), .text("the title of a note")])
            }
          }
        }
      }
      try await group.waitForAll()
    }
    return watch.seconds
  }
}

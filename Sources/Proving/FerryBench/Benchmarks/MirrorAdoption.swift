import Ferry
import FerryLaboratory
import FerryPostgres
import FerryProtocol
import Foundation

extension Benchmark {
  /// A company's table on the way to its devices.
  static let mirrorAdoption = Benchmark(
    name: "mirror-adoption",
    summary: "Rows a second of an adoption, beside those of a device that pulls the same rows."
  ) { context in
    let count = context.size(50_000, quick: 10_000)
    let contest = Contest(rounds: context.size(3, quick: 1), warmUps: 0, context: context)
    context.begin("mirrors: adoption", "steps", total: contest.steps(contestants: 2))
    let stage = try await AdoptionStage.make(context, rows: count)
    do {
      let rates = try await contest.medians([
        { Double(count) / (try await stage.adopt()) },
        { Double(count) / (try await stage.pull()) },
      ])
      try await stage.end()
      return [
        Measurement(
          name: "mirror, adoption", figure: Amount(rates[0], .perSecond("rows")),
          raw: Amount(rates[1], .perSecond("rows")), target: .ratioAtLeast(0.5),
          notes: [
            "\(count) rows, from the beginning of the command to its end",
            "raw: a new device pulls and applies the same number of rows",
          ])
      ]
    } catch {
      try? await stage.end()
      throw error
    }
  }
}

/// A server, and a company's table. All calls come one by one.
private final class AdoptionStage {
  private let daemon: Daemon
  private let directory: TemporaryDirectory
  private let database: String
  private let rows: Int
  /// Mirrors and devices made so far.
  private var count = 0

  static func make(_ context: BenchmarkContext, rows: Int) async throws -> AdoptionStage {
    let database = try context.makeDatabase()
    try PostgresConnection(url: database).execute(
      """
      CREATE TABLE tasks(id text PRIMARY KEY, title text, notes text, priority bigint, done bigint,
        due text);
      INSERT INTO tasks SELECT to_char(n, 'FM00000000'), 'title of the task ' || n,
          'harbour lantern cargo tide anchor ledger rope signal compass deck ' || n, n % 5, n % 2,
          '2026-11-25T08:00:00Z'
        FROM generate_series(1, \(rows)) AS n;
      ANALYZE tasks
      """)
    let daemon = try await Daemon.start(database: try context.makeDatabase())
    return AdoptionStage(daemon, try TemporaryDirectory(prefix: "ferry-bench"), database, rows)
  }

  private init(
    _ daemon: Daemon, _ directory: TemporaryDirectory, _ database: String, _ rows: Int
  ) {
    self.directory = directory
    (self.daemon, self.database, self.rows) = (daemon, database, rows)
  }

  func end() async throws { try await daemon.stop() }

  private func space(_ number: Int) -> String { "adopted-\(number)" }

  /// Adopts the table into a new space, and removes the mirror. Returns the seconds of the adoption.
  func adopt() async throws -> Double {
    count += 1
    let folder = ["--mirrors", directory.file("mirrors").path]
    let watch = Stopwatch()
    try await run(
      [
        "adopt", "bench", "--server", daemon.url, "--space", space(count), "--database", database,
        "--table", "tasks", "--capture", "triggers",
      ] + folder)
    let seconds = watch.seconds
    try await run(["remove", "bench", "--forget"] + folder)
    return seconds
  }

  private func run(_ words: [String]) async throws {
    let finished = try await ChildProcess.run(
      try Executables.ferryd(), ["mirror"] + words, within: .seconds(1_800))
    guard finished.status == .exited(0) else { throw BenchError(finished.error) }
  }

  /// Pulls the rows of the last adopted space with a new device. Returns seconds.
  func pull() async throws -> Double {
    if count == 0 { _ = try await adopt() }
    let path = directory.file("device-\(UUID().uuidString).db").path
    let device = try await Replica.open(path)
    try await device.write { try $0.execute(TaskRow.creation()) }
    try await device.track(Name(TaskRow.table))
    try await device.connect(to: daemon.url, space: space(count))
    let watch = Stopwatch()
    _ = try await device.pull()
    let seconds = watch.seconds
    let found = try await device.read {
      try $0.query("SELECT count(*) AS rows FROM tasks").first?["rows"]
    }
    await device.close()
    guard found == .integer(Int64(rows)) else { throw BenchError("the device lacks rows") }
    return seconds
  }
}

import FerryLaboratory
import FerryPostgres
import Foundation

extension Benchmark {
  /// One table whose rows belong to many spaces, each with a mirror of one process.
  static let mirrorGroups = Benchmark(
    name: "mirror-groups",
    summary: "A program's insert into a table of 200 spaces, the way of its rows, and the memory."
  ) { context in
    let (spaces, count) = (context.size(200, quick: 40), context.size(20_000, quick: 4_000))
    let contest = Contest(rounds: context.size(3, quick: 1), context: context)
    context.begin("mirrors: a group", "steps", total: 1 + contest.steps(contestants: 2))
    let stage = try await MirrorGroupStage.make(context, spaces: spaces)
    do {
      context.advance()
      var arrivals: [Double] = []
      let rates = try await contest.medians([
        {
          let (insert, arrival) = try await stage.insertIntoSpaces(count)
          arrivals.append(Double(count) / arrival)
          return Double(count) / insert
        },
        { Double(count) / (try stage.insert(count, into: "plain")) },
      ])
      let figures = try stage.figures()
      try await stage.end()
      let notes = ["\(count) rows of one statement, for \(spaces) spaces"]
      return [
        Measurement(
          name: "a program's insert into a table of \(spaces) spaces",
          figure: Amount(rates[0], .perSecond("rows")), raw: Amount(rates[1], .perSecond("rows")),
          notes: notes + ["raw: the same statement on a table without mirrors"]),
        Measurement(
          name: "these rows, until all spaces have them",
          figure: Amount(arrivals.percentile(50), .perSecond("rows")), notes: notes),
        Measurement(
          name: "memory of the process with \(spaces) mirrors",
          figure: Amount(Double(figures.peakResident), .bytes), target: .atMost(100 * 1_048_576),
          notes: ["\(figures.files) open files"]),
        Measurement(
          name: "threads of the process with \(spaces) mirrors",
          figure: Amount(Double(figures.threads), .count("threads")), target: .atMost(40)),
      ]
    } catch {
      try? await stage.end()
      throw error
    }
  }
}

/// A server, and a group of mirrors of one table in a separate process.
private final class MirrorGroupStage {
  private let daemon: Daemon
  private let directory: TemporaryDirectory
  private let mirror: ChildProcess
  private let connection: PostgresConnection
  private let spaces: Int
  /// Rows in the table of the group.
  private var rows: Int

  /// Adopts a table with a row of each space.
  static func make(_ context: BenchmarkContext, spaces: Int) async throws -> MirrorGroupStage {
    let daemon = try await Daemon.start(database: try context.makeDatabase())
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let database = try context.makeDatabase()
    let connection = try PostgresConnection(url: database)
    for table in ["notes", "plain"] {
      try connection.execute(
        "CREATE TABLE \(table)(id bigint PRIMARY KEY, account_id integer NOT NULL, title text)")
    }
    try connection.execute(
      "INSERT INTO notes SELECT n, n, 'note ' || n FROM generate_series(1, \(spaces)) AS n")
    let folder = ["--mirrors", directory.file("mirrors").path]
    let adopted = try await ChildProcess.run(
      try Executables.ferryd(),
      [
        "mirror", "adopt", "accounts", "--server", daemon.url, "--database", database, "--table",
        "notes", "--space-column", "account_id", "--space-name", "account-{}",
      ] + folder, within: .seconds(600))
    guard adopted.status == .exited(0) else { throw BenchError(adopted.error) }
    let mirror = try ChildProcess(
      try Executables.ferryd(), ["mirror", "run", "accounts"] + folder)
    for _ in 0..<spaces {
      _ = try await mirror.line(within: .seconds(600)) { $0.contains("a mirror runs") }
    }
    return MirrorGroupStage(daemon, directory, mirror, connection, spaces)
  }

  private init(
    _ daemon: Daemon, _ directory: TemporaryDirectory, _ mirror: ChildProcess,
    _ connection: PostgresConnection, _ spaces: Int
  ) {
    (self.daemon, self.directory, self.mirror) = (daemon, directory, mirror)
    (self.connection, self.spaces, rows) = (connection, spaces, spaces)
  }

  func end() async throws {
    mirror.send(SIGTERM)
    _ = try await mirror.exitStatus(within: .seconds(60))
    try await daemon.stop()
  }

  /// Inserts rows in one statement. Returns seconds.
  func insert(_ count: Int, into table: String) throws -> Double {
    let statement = """
      INSERT INTO \(table) SELECT n, n % \(spaces) + 1, 'note ' || n
      FROM generate_series(\(rows + 1), \(rows + count)) AS n
      """
    let watch = Stopwatch()
    try connection.execute(statement)
    rows += count
    return watch.seconds
  }

  /// Inserts rows into the table of the group. Returns the seconds of the statement, and those
  /// until the spaces have all rows.
  func insertIntoSpaces(_ count: Int) async throws -> (insert: Double, arrival: Double) {
    let watch = Stopwatch()
    let insert = try insert(count, into: "notes")
    while try connection.query(.once("SELECT FROM ferry_mirror.captured LIMIT 1")).count > 0 {
      try await Task.sleep(for: .milliseconds(5))
    }
    return (insert, watch.seconds)
  }

  /// Returns the most memory of the mirrors' process, in bytes, and the present number of threads
  /// and open files.
  func figures() throws -> (peakResident: Int, threads: Int, files: Int) {
    let process = "/proc/\(mirror.processID)"
    let count = { try FileManager.default.contentsOfDirectory(atPath: process + $0).count }
    return (
      try ProcessFigures.read(mirror.processID).peakResident, try count("/task"), try count("/fd")
    )
  }
}

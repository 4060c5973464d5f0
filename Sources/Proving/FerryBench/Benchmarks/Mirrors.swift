import Ferry
import FerryLaboratory
import FerryPostgres
import FerryProtocol
import Foundation

extension Benchmark {
  /// The rows carried by a mirror between a space and tables of PostgreSQL, and the delay of one
  /// row.
  static let mirrors = Benchmark(
    name: "mirrors",
    summary: "Rows a second that a mirror carries to PostgreSQL and from it, and the delay of one."
  ) { context in
    let count = context.size(20_000, quick: 5_000)
    let samples = context.size(200, quick: 40)
    let contest = Contest(rounds: context.size(5, quick: 2), context: context)
    context.begin("mirrors", "steps", total: 2 * contest.steps(contestants: 2) + 2 * samples)
    let stage = try await MirrorStage.make(context)
    do {
      let out = try await contest.medians([
        { Double(count) / (try await stage.applyRows(count)) },
        { Double(count) / (try stage.insertByHand(count)) },
      ])
      let back = try await contest.medians([
        { Double(count) / (try await stage.captureRows(count)) },
        { Double(count) / (try await stage.send(count)) },
      ])
      let (outwards, inwards) = (
        try await stage.delaysOut(samples) { context.advance() },
        try await stage.delaysIn(samples) { context.advance() }
      )
      try await stage.end()
      let notes = ["\(count) rows of one transaction"]
      return [
        Measurement(
          name: "mirror, to PostgreSQL", figure: Amount(out[0], .perSecond("rows")),
          raw: Amount(out[1], .perSecond("rows")), target: .ratioAtLeast(0.3),
          notes: notes + ["raw: the same rows in one transaction of INSERT … SELECT FROM unnest"]),
        Measurement(
          name: "mirror, from PostgreSQL", figure: Amount(back[0], .perSecond("rows")),
          raw: Amount(back[1], .perSecond("rows")), target: .ratioAtLeast(0.7),
          notes: notes + ["raw: a device writes and syncs the same rows without a mirror"]),
      ]
        + delays(
          "mirror, live to PostgreSQL", outwards, median: 20,
          "from the server's answer to a push until a query of the table shows the row")
        + delays(
          "mirror, live from PostgreSQL", inwards, median: 15,
          "from the commit in PostgreSQL until a device that watches has the row")
    } catch {
      try? await stage.end()
      throw error
    }
  }

  /// - Parameter median: the target, in milliseconds.
  private static func delays(
    _ name: String, _ times: [Double], median: Double, _ what: String
  ) -> [Measurement] {
    [(50, median), (99, 100)].map { percent, target in
      Measurement(
        name: "\(name), p\(percent)",
        figure: Amount(times.percentile(Double(percent)), .milliseconds),
        target: .atMost(target), notes: [what, "\(times.count) samples"])
    }
  }
}

/// A server with a device, and a mirror in a separate process. All calls come one by one.
private final class MirrorStage {
  private let daemon: Daemon
  private let device: Replica
  private let database: String
  private let directory: TemporaryDirectory
  private let mirror: ChildProcess
  private let connection: PostgresConnection
  private var random = SeededRandom(seed: 17)

  static func make(_ context: BenchmarkContext) async throws -> MirrorStage {
    let daemon = try await Daemon.start(database: try context.makeDatabase())
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let device = try await Replica.open(directory.file("device.db").path)
    try await device.write { try $0.execute(TaskRow.creation()) }
    try await device.track(Name(TaskRow.table))
    try await device.connect(to: daemon.url, space: "mirrored")
    _ = try await device.publishTables()
    _ = try await device.sync()
    let database = try context.makeDatabase()
    let folder = ["--mirrors", directory.file("mirrors").path]
    let added = try await ChildProcess.run(
      try Executables.ferryd(),
      [
        "mirror", "add", "bench", "--server", daemon.url, "--space", "mirrored", "--database",
        database, "--schema", "app",
      ] + folder)
    guard added.status == .exited(0) else { throw BenchError(added.error) }
    let mirror = try ChildProcess(
      try Executables.ferryd(), ["mirror", "run", "bench"] + folder)
    _ = try await mirror.line(within: .seconds(30)) { $0.contains("a mirror runs") }
    let stage = MirrorStage(
      daemon, device, database, directory, mirror, try PostgresConnection(url: database))
    try stage.connection.execute("CREATE TABLE raw(LIKE app.tasks INCLUDING ALL)")
    return stage
  }

  private init(
    _ daemon: Daemon, _ device: Replica, _ database: String, _ directory: TemporaryDirectory,
    _ mirror: ChildProcess, _ connection: PostgresConnection
  ) {
    (self.daemon, self.device, self.database) = (daemon, device, database)
    (self.directory, self.mirror, self.connection) = (directory, mirror, connection)
  }

  func end() async throws {
    mirror.send(SIGTERM)
    _ = try await mirror.exitStatus(within: .seconds(30))
    await device.close()
    try await daemon.stop()
  }

  private func rows(_ count: Int) -> [TaskRow] {
    (0..<count).map { _ in TaskRow(id: UniqueID.generate(), random: &random) }
  }

  private func write(_ rows: [TaskRow]) async throws {
    try await device.write { database in
      for row in rows {
        try database.execute(
          "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
          [.text(row.id)] + row.columns.map(\.value))
      }
    }
  }

  private func count(_ query: String) throws -> Int64 {
    try connection.query(.once(query)).first?.int8(0) ?? 0
  }

  private func wait(_ query: String, _ wanted: Int64) async throws {
    while try count(query) != wanted { try await Task.sleep(for: .milliseconds(2)) }
  }

  // MARK: To PostgreSQL

  /// Sends rows to the space while the mirror is paused. Returns the seconds from the restart
  /// until they are visible in the table.
  func applyRows(_ count: Int) async throws -> Double {
    let rows = rows(count)
    let wanted = try self.count("SELECT count(*) FROM app.tasks") + Int64(count)
    mirror.send(SIGSTOP)
    defer { mirror.send(SIGCONT) }
    try await write(rows)
    _ = try await device.sync()
    let watch = Stopwatch()
    mirror.send(SIGCONT)
    try await wait("SELECT count(*) FROM app.tasks", wanted)
    return watch.seconds
  }

  /// Inserts the same number of rows by plain SQL. Returns seconds.
  func insertByHand(_ count: Int) throws -> Double {
    let batches = batches(rows(count))
    let watch = Stopwatch()
    try connection.transaction { connection in
      for batch in batches { _ = try connection.query(.once(Self.insert("raw")), batch) }
    }
    return watch.seconds
  }

  // MARK: From PostgreSQL

  /// Inserts rows into the mirrored table. Returns the seconds until the space has them.
  func captureRows(_ count: Int) async throws -> Double {
    let batches = batches(rows(count))
    let watch = Stopwatch()
    try connection.transaction { connection in
      for batch in batches { _ = try connection.query(.once(Self.insert("app.tasks")), batch) }
    }
    try await wait("SELECT count(*) FROM ferry_mirror.captured", 0)
    return watch.seconds
  }

  /// Writes rows on a device and sends them to the space while the mirror is paused. Returns
  /// seconds.
  func send(_ count: Int) async throws -> Double {
    // The mirror's rows are no part of the measurement.
    _ = try await device.sync()
    let rows = rows(count)
    let wanted = try self.count("SELECT count(*) FROM app.tasks") + Int64(count)
    mirror.send(SIGSTOP)
    let watch = Stopwatch()
    do {
      defer { mirror.send(SIGCONT) }
      try await write(rows)
      _ = try await device.push()
    }
    let seconds = watch.seconds
    try await wait("SELECT count(*) FROM app.tasks", wanted)
    return seconds
  }

  // MARK: One row

  /// Sends rows one by one. Returns for each the milliseconds from the server's answer until a
  /// query of the table shows it.
  func delaysOut(_ samples: Int, progress: () -> Void) async throws -> [Double] {
    _ = try await device.sync()
    var times: [Double] = []
    for _ in 0..<samples {
      try await rest()
      let row = rows(1)
      try await write(row)
      _ = try await device.push()
      let watch = Stopwatch()
      let found: PostgresParameters = [.text(row[0].id)]
      while try connection.query(.once("SELECT FROM app.tasks WHERE id = $1"), found).isEmpty {
        try await Task.sleep(for: .microseconds(500))
      }
      times.append(watch.milliseconds)
      progress()
    }
    return times
  }

  /// Inserts rows one by one into the mirrored table. Returns for each the milliseconds from the
  /// commit until a watching device has it.
  func delaysIn(_ samples: Int, progress: () -> Void) async throws -> [Double] {
    _ = try await device.sync()
    let (seen, report) = AsyncStream<Void>.makeStream()
    let watcher = Task { [device] in
      try await device.watch(onEvent: { event in
        switch event {
        case .synced, .connected: report.yield()
        case .offline, .stopped: break
        }
      })
    }
    defer { watcher.cancel() }
    var arrivals = seen.makeAsyncIterator()
    _ = await arrivals.next()
    var times: [Double] = []
    for _ in 0..<samples {
      try await rest()
      let row = rows(1)
      _ = try connection.query(.once(Self.insert("app.tasks")), batches(row)[0])
      let watch = Stopwatch()
      while try await !device.has(row[0].id) {
        guard await arrivals.next() != nil else { throw BenchError("the device has stopped") }
      }
      times.append(watch.milliseconds)
      progress()
    }
    return times
  }

  /// Waits until all have come to rest, and never in step with anything.
  private func rest() async throws {
    try await Task.sleep(for: .milliseconds(20 + Int(random.next() % 20)))
  }

  private static func insert(_ table: String) -> String {
    "INSERT INTO \(table)(id, title, notes, priority, done, due) SELECT * FROM "
      + "unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[])"
  }

  private func batches(_ rows: [TaskRow]) -> [PostgresParameters] {
    stride(from: 0, to: rows.count, by: 500).map { start in
      let rows = rows[start..<min(rows.count, start + 500)]
      return [
        .array(PostgresArray(rows.map { Optional($0.id) })),
        .array(PostgresArray(rows.map { Optional($0.title) })),
        .array(PostgresArray(rows.map { Optional($0.notes) })),
        .array(PostgresArray(rows.map { Optional($0.priority) })),
        .array(PostgresArray(rows.map { Optional($0.done) })),
        .array(PostgresArray(rows.map { Optional($0.due) })),
      ]
    }
  }
}

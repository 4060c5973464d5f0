import FerryLaboratory
import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerrySyncClient

extension Benchmark {
  /// The cost of typed records over SQLite's own interface.
  static let records = Benchmark(
    name: "records", summary: "Typed records read and written, against loops over sqlite3."
  ) { context in
    let count = context.size(100_000, quick: 20_000)
    let contest = Contest(rounds: context.size(9, quick: 3), context: context)
    context.begin("records", "rounds", total: contest.steps(contestants: 2) * 2)
    var random = SeededRandom(seed: 5)
    var clock = HybridClock()
    let tasks = (0..<count).map { _ in
      let time = clock.tick(wall: SystemClock.milliseconds())
      let id = UniqueID(timestamp: time, random: random.next())
      return TaskRecord(TaskRow(id: id, random: &random))
    }
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let database = try await LocalDatabase.open(directory.file("local.db").path)
    try await database.write { try TaskRecord.table.insert(contentsOf: tasks, in: $0) }
    let path = database.path
    let read = try await contest.medians([
      { try await fetch(count, from: database) }, { try RawRecords.read(count, at: path) },
    ])
    let written = try await contest.medians([
      { try insert(tasks, asRecords: true) }, { try insert(tasks, asRecords: false) },
    ])
    return [
      measurement("records, fetched", read, target: 0.6, raw: "a loop over sqlite3_step"),
      measurement(
        "records, inserted", written, target: 0.5, raw: "a prepared statement, the same table"),
    ]
  }

  private static func measurement(
    _ name: String, _ speeds: [Double], target: Double, raw: String
  ) -> Measurement {
    Measurement(
      name: name, figure: Amount(speeds[0], .perSecond("records")),
      raw: Amount(speeds[1], .perSecond("rows")), target: .ratioAtLeast(target),
      notes: ["raw: \(raw)"])
  }

  /// Returns the records a second of a typed fetch.
  private static func fetch(_ count: Int, from database: LocalDatabase) async throws -> Double {
    try await database.read { database in
      let watch = Stopwatch()
      let records = try TaskRecord.all.fetch(database)
      let seconds = watch.seconds
      guard records.count == count else { throw RecordCountError(found: records.count) }
      return Double(count) / seconds
    }
  }

  /// Returns the rows a second written to a tracked table, with the recording triggers.
  private static func insert(_ tasks: [TaskRecord], asRecords: Bool) throws -> Double {
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let file = try ReplicaFile(
      path: directory.file("replica.db").path, wallClock: SystemClock.milliseconds,
      random: EntropyPool().next)
    try file.write { try TaskRecord.table.create(in: $0) }
    try file.track([Name(TaskRow.table)])
    let statement = try file.connection.prepare("INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)")
    let watch = Stopwatch()
    for start in stride(from: 0, to: tasks.count, by: 1_000) {
      let slice = tasks[start..<min(tasks.count, start + 1_000)]
      try file.write { database in
        if asRecords { return try TaskRecord.table.insert(contentsOf: slice, in: database) }
        for task in slice {
          try statement.run(
            task.id, task.title, task.notes, task.priority, task.done, task.due)
        }
      }
    }
    return Double(tasks.count) / watch.seconds
  }
}

/// A fetch returned another number of records than the table has.
struct RecordCountError: Error { let found: Int }

/// The benchmarks' row as a typed record.
struct TaskRecord: Codable, Sendable, TableRecord {
  let id: String
  let title: String
  let notes: String
  let priority: Int64
  let done: Bool
  let due: String

  static let table = Table<TaskRecord>(
    Name(TaskRow.table),
    [
      .text("id").primaryKey(), .text("title"), .text("notes"), .integer("priority"),
      .integer("done"), .text("due"),
    ])
}

extension TaskRecord {
  init(_ row: TaskRow) {
    (id, title, notes) = (row.id, row.title, row.notes)
    (priority, done, due) = (row.priority, row.done != 0, row.due)
  }
}

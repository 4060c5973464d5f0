import FerryLaboratory
import FerryProtocol
import FerrySQLite
import FerrySyncClient
import Foundation

extension Benchmark {
  /// The time of a device to apply a pull list.
  static let apply = Benchmark(
    name: "apply", summary: "Rows a second that a replica stages and applies to a tracked table."
  ) { context in
    let pages = context.size(20, quick: 6)
    let rows = PulledRows(pages: pages)
    let contest = Contest(rounds: context.size(7, quick: 3), context: context)
    context.begin("apply", "rounds", total: contest.steps(contestants: 2))
    let figures = try await contest.medians([
      { Double(rows.rows.count) / (try rows.applyByReplica()) },
      { Double(rows.rows.count) / (try rows.upsertByHand()) },
    ])
    return [
      Measurement(
        name: "apply", figure: Amount(figures[0], .perSecond("rows")),
        raw: Amount(figures[1], .perSecond("rows")), target: .ratioAtLeast(0.4),
        notes: ["\(pages) pages of 5,000, visible all at once"])
    ]
  }
}

/// A pull list as it arrives, and the same rows as values.
private struct PulledRows {
  private(set) var rows: [TaskRow] = []
  private var pages: [(body: [UInt8], head: PageHead)] = []

  init(pages count: Int) {
    var list = PulledPages(count: count)
    while let page = list.next() {
      rows += page.rows
      pages.append((page.body, page.head))
    }
  }

  /// Stages every page but the last and applies them all, in a new replica. Seconds.
  func applyByReplica() throws -> Double {
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let file = try ReplicaFile(
      path: directory.file("replica.db").path, wallClock: SystemClock.milliseconds,
      random: EntropyPool().next)
    _ = try file.write { try $0.execute(TaskRow.creation()) }
    try file.track([Name(TaskRow.table)])
    let watch = Stopwatch()
    for (body, head) in pages.dropLast() {
      try file.incoming.stage(body, head, changes: head.count)
    }
    guard let (body, head) = pages.last else { return 0 }
    let applied = try file.apply(last: body, head).applied
    let seconds = watch.seconds
    guard applied == rows.count else { throw BenchError("applied \(applied) of \(rows.count)") }
    return seconds
  }

  /// Upserts the same rows with one prepared statement, 1,000 a transaction. Seconds.
  func upsertByHand() throws -> Double {
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let connection = try SQLiteConnection(path: directory.file("raw.db").path)
    let upsert = try TaskRow.prepareUpsert(on: connection)
    let watch = Stopwatch()
    for start in stride(from: 0, to: rows.count, by: 1_000) {
      try connection.transaction {
        for row in rows[start..<min(rows.count, start + 1_000)] {
          try upsert.run(row)
        }
      }
    }
    return watch.seconds
  }
}

extension TaskRow {
  /// Creates the table on a new connection, and returns the upsert.
  static func prepareUpsert(on connection: SQLiteConnection) throws -> SQLiteStatement {
    try connection.execute(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-16384;")
    try connection.execute(TaskRow.creation())
    let sets = TaskRow.columnNames.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
    return try connection.prepare(
      "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET \(sets)")
  }
}

/// Binds the key and all columns, in the table's order.
extension TaskRow: SQLiteBindable {
  func bind(to parameters: inout SQLiteParameters) {
    parameters.append(id)
    parameters.append(title)
    parameters.append(notes)
    parameters.append(priority)
    parameters.append(done)
    parameters.append(due)
  }
}

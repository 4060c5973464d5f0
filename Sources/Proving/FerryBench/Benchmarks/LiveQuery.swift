import Ferry
import FerryLaboratory
import Foundation

extension Benchmark {
  /// The time from a commit to the new result of a live query, and the time to open the file.
  static let liveQuery = Benchmark(
    name: "live-query",
    summary: "Time until a live query over 100 of many rows has its new result, and time to open."
  ) { context in
    let (rows, writes) = (context.size(1_000_000, quick: 50_000), context.size(500, quick: 100))
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let path = directory.file("live.db").path
    let replica = try await Replica.tasks(path, rows: rows)
    context.begin("live-query", "commits", total: writes)
    let refreshes = try await refreshTimes(of: replica, writes: writes) { context.advance() }
    let openings = try await openingTimes(of: path)
    let notes = "\(rows.grouped) rows"
    return [
      Measurement(
        name: "live query, p50", figure: Amount(refreshes.percentile(50), .milliseconds),
        target: .atMost(5),
        notes: [
          "100 of \(notes), \(writes) commits, p99 "
            + "\(refreshes.percentile(99).rounded(to: 1)) ms"
        ]),
      Measurement(
        name: "replica opened, p50", figure: Amount(openings.percentile(50), .milliseconds),
        target: .atMost(30), notes: ["\(notes), \(openings.count) samples"]),
    ]
  }

  /// Returns the milliseconds from just before each commit to the result with it.
  private static func refreshTimes(
    of replica: Replica, writes: Int, progress: () -> Void
  ) async throws -> [Double] {
    var titles = replica.observe { database in
      try database.query("SELECT * FROM tasks WHERE id < '00000101' ORDER BY id")
        .map { $0["title"] }
    }.makeAsyncIterator()
    guard try await titles.next()?.count == 100 else {
      throw BenchError("the live query has not the 100 rows that were written")
    }
    var times: [Double] = []
    for number in 0..<writes {
      let title = Value.text("written \(number)")
      let start = try await replica.write {
        _ = try $0.execute("UPDATE tasks SET title = ? WHERE id = '00000050'", [title])
        return ContinuousClock.now
      }
      while try await titles.next()?.contains(title) == false {}
      times.append((ContinuousClock.now - start) / .milliseconds(1))
      progress()
    }
    return times
  }

  private static func openingTimes(of path: String) async throws -> [Double] {
    var times: [Double] = []
    for _ in 0..<20 {
      let start = ContinuousClock.now
      let replica = try await Replica.open(path)
      _ = try await replica.read { try $0.query("SELECT title FROM tasks WHERE id = '00000050'") }
      times.append((ContinuousClock.now - start) / .milliseconds(1))
    }
    return times
  }
}

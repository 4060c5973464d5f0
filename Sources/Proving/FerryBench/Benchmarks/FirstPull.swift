import FerryLaboratory
import FerryProtocol
import FerrySQLite
import FerrySyncClient
import Foundation

extension Benchmark {
  /// A new device's first pull in a file into which another process writes.
  static let firstPull = Benchmark(
    name: "first-pull",
    summary: "The longest wait of a write during a first pull, of this process and of another one."
  ) { context in
    let pages = (context.rows ?? context.size(200_000, quick: 50_000)) / 5_000
    let list = FirstPull(pages: pages)
    context.begin("first-pull", "pulls", total: 6)
    let raw = try list.upsertByHand()
    context.advance()
    let alone = try list.pull(in: TemporaryDirectory(prefix: "ferry-bench"))
    context.advance()
    let beside = try await list.pullBesideWriter()
    context.advance()
    let atOnce = try await list.pullBesideWriter(atOnce: true)
    context.advance()
    let own = try await OwnWrites.during(list)
    context.advance()
    let ownAtOnce = try await OwnWrites.during(list, atOnce: true)
    context.advance()
    let rows = Double(pages * 5_000)
    return [
      Measurement(
        name: "first pull, wait of a writer", figure: Amount(beside.waits.longest, .milliseconds),
        target: .atMost(1_000),
        notes: [
          "\(beside.waits.writes) writes, p50 \(Amount(beside.waits.median, .milliseconds).text)",
          "the pull took \(beside.seconds.rounded(to: 1)) s beside them, "
            + "\(alone.rounded(to: 1)) s alone",
          "applied at once, it took \(atOnce.seconds.rounded(to: 1)) s, and a write waited "
            + Amount(atOnce.waits.longest, .milliseconds).text,
        ]),
      Measurement(
        name: "first pull, wait of an own write", figure: Amount(own.longest, .milliseconds),
        target: .atMost(1_000),
        notes: [
          "\(own.writes) writes through the same replica, p50 "
            + Amount(own.median, .milliseconds).text,
          "applied at once, a write waited \(Amount(ownAtOnce.longest, .milliseconds).text): "
            + "\((ownAtOnce.longest / own.longest).rounded(to: 1)) times as long",
        ]),
      Measurement(
        name: "first pull", figure: Amount(rows / alone, .perSecond("rows")),
        raw: Amount(rows / raw, .perSecond("rows")),
        notes: ["\(Int(rows).grouped) rows, staged and applied"]),
    ]
  }
}

/// A first pull of a list of new tasks, page by page. The time to make a page does not count.
struct FirstPull {
  let pages: Int

  /// Stages and applies the list in a new replica. Seconds.
  ///
  /// - Parameter isAtOnce: whether one transaction applies it, as each later list.
  func pull(in directory: TemporaryDirectory, atOnce isAtOnce: Bool = false) throws -> Double {
    let file = try replica(in: directory)
    if isAtOnce { file.firstListOptions.changesMin = .max }
    var list = PulledPages(count: pages)
    var seconds = 0.0
    while let page = list.next() {
      let watch = Stopwatch()
      if page.head.more {
        try file.incoming.stage(page.body, page.head, changes: page.head.count)
      } else {
        let applied = try apply(page, to: file)
        guard applied == list.total else {
          throw BenchError("applied \(applied) of \(list.total)")
        }
      }
      seconds += watch.seconds
    }
    return seconds
  }

  /// Applies the complete list as a sync does. Returns the number of changes.
  private func apply(_ page: PulledPages.Page, to file: ReplicaFile) throws -> Int {
    if try file.firstList.begin(last: page.body, page.head) {
      var slice = Stopwatch()
      while try file.firstList.fillSlice() {
        let pause = file.firstListOptions.pause(.seconds(slice.seconds))
        Thread.sleep(forTimeInterval: pause / .seconds(1))
        slice = Stopwatch()
      }
    }
    return try file.apply(last: page.body, page.head).applied
  }

  /// The same, while another process writes small rows into the file.
  func pullBesideWriter(
    atOnce isAtOnce: Bool = false
  ) async throws -> (seconds: Double, waits: SmallWrites.Waits) {
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    do {
      let file = try replica(in: directory)
      _ = try file.write { try $0.execute(SmallWrites.creation) }
    }
    let writer = try await SmallWrites(Self.path(in: directory))
    let seconds = try pull(in: directory, atOnce: isAtOnce)
    return (seconds, try await writer.end())
  }

  /// Upserts the same rows with one prepared statement, 1,000 a transaction. Seconds.
  func upsertByHand() throws -> Double {
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let connection = try SQLiteConnection(path: directory.file("raw.db").path)
    let upsert = try TaskRow.prepareUpsert(on: connection)
    var list = PulledPages(count: pages)
    var seconds = 0.0
    while let page = list.next() {
      let watch = Stopwatch()
      for start in stride(from: 0, to: page.rows.count, by: 1_000) {
        try connection.transaction {
          for row in page.rows[start..<min(page.rows.count, start + 1_000)] { try upsert.run(row) }
        }
      }
      seconds += watch.seconds
    }
    return seconds
  }

  private func replica(in directory: TemporaryDirectory) throws -> ReplicaFile {
    let path = Self.path(in: directory)
    let isNew = !FileManager.default.fileExists(atPath: path)
    let file = try ReplicaFile(
      path: path, wallClock: SystemClock.milliseconds, random: EntropyPool().next)
    guard isNew else { return file }
    _ = try file.write { try $0.execute(TaskRow.creation()) }
    try file.track([Name(TaskRow.table)])
    return file
  }

  private static func path(in directory: TemporaryDirectory) -> String {
    directory.file("replica.db").path
  }
}

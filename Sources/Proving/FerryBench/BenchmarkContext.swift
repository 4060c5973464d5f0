import FerryCommandLine
import FerryLaboratory
import Synchronization

/// The context of all benchmarks: the private PostgreSQL, the size of the run, and the progress
/// line.
final class BenchmarkContext: Sendable {
  /// True if smaller and fewer rounds are wanted.
  let isQuick: Bool
  /// Requested updates of the retention benchmark; `nil` for the default number.
  let updates: Int?
  /// Rows of the first pull; `nil` for the default number.
  let rows: Int?
  /// The only store for the retention benchmark; `nil` for all.
  let store: String?
  /// The database for ferryd in place of a private one; `nil` for private ones.
  let database: String?
  private let cluster = Mutex<PostgresCluster?>(nil)
  private let bar = Mutex<ProgressBar?>(nil)

  init(
    isQuick: Bool, updates: Int? = nil, rows: Int? = nil, store: String? = nil,
    database: String? = nil
  ) {
    (self.isQuick, self.updates, self.store) = (isQuick, updates, store)
    (self.rows, self.database) = (rows, database)
  }

  /// Runs one benchmark behind a separate progress line.
  func measure(_ benchmark: Benchmark) async throws -> [Measurement] {
    defer { bar.withLock { $0?.finish() } }
    return try await benchmark.run(self)
  }

  /// Returns a size: the full one, or a smaller one, enough for a quick run.
  func size(_ full: Int, quick: Int) -> Int { isQuick ? quick : full }

  /// Begins the progress line; `advance` counts up to `total`.
  func begin(_ label: String, _ unit: String, total: Int) {
    let new = ProgressBar(label, unit: .items(unit), total: Int64(total))
    bar.withLock { bar in
      bar?.finish()
      bar = new
    }
    new.update(completed: 0)
  }

  /// Advances the progress line.
  func advance(by amount: Int = 1) { bar.withLock { $0?.advance(by: Int64(amount)) } }

  /// Returns the database for ferryd, which another run may have filled.
  func storeDatabase() throws -> String { try database ?? makeDatabase() }

  /// Returns an empty database on the private cluster, which starts at the first call.
  func makeDatabase() throws -> String {
    try cluster.withLock { cluster in
      let running = try cluster ?? PostgresCluster()
      cluster = running
      return try running.createDatabase()
    }
  }
}

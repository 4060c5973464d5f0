/// A fixed number of connections, each with a thread of its own.
///
/// Work waits in the order of arrival. Connections are opened when first needed and replaced when
/// broken; work that met with a broken connection is not repeated (see `PostgresError`).
package final class PostgresPool: Sendable {
  private let queue = PoolQueue()
  private let threads = ThreadGroup()

  /// Starts the threads and connects nothing yet. Throws `invalidURL`.
  ///
  /// - Parameters:
  ///   - url: `postgres://user:password@host:port/database`, or libpq's `key=value` form.
  ///   - connections: how many at most, at least 1.
  ///   - prepareConnection: statements to run on each new connection, such as `SET …`.
  package init(
    url: String, connections: Int, prepareConnection: [String] = []
  ) throws(PostgresError) {
    precondition(connections > 0, "a pool needs a connection")
    let target = try ConnectionTarget(url)
    for number in 0..<connections {
      threads.start(name: "postgres-\(number)") { [queue] in
        let slot = PoolSlot(target: target, prepareConnection: prepareConnection)
        while let job = queue.next() { job.run(on: slot) }
      }
    }
  }

  deinit { queue.close() }

  /// Runs `body` on a connection's thread; it may block there.
  ///
  /// A transaction that `body` leaves open is rolled back. Throws what `body` throws,
  /// `connectionFailed` when no connection can be made, `poolClosed` after `close()`, and
  /// `CancellationError` when the task is cancelled before the work starts; once started, it runs
  /// to its end.
  package func run<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws -> Value {
    let job = PoolJob(body)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        guard job.wait(continuation) else {
          continuation.resume(throwing: CancellationError())
          return
        }
        if !queue.push(job) {
          job.fail(PostgresError(.poolClosed, "the connection pool is closed"))
        }
      }
    } onCancel: {
      job.fail(CancellationError())
    }
  }

  /// Refuses new work, finishes what is waiting, and disconnects.
  package func close() async {
    queue.close()
    await threads.wait()
  }
}

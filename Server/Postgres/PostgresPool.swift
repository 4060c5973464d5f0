import Dispatch
import FerryPlatform

/// A pool of a fixed number of connections, each with its own thread.
///
/// The users of the server take turns, in each lane separately (see ``PoolShares`` and `WorkFlow`).
/// Connections are opened when first needed and replaced when broken. Work on a broken connection
/// is not repeated (see `PostgresError`).
package final class PostgresPool: Sendable {
  /// The behaviour of a pool if a server is slow, hangs or takes no writes.
  package struct Options: Sendable {
    package var shares = PoolShares.none
    /// The longest silence in an answer; `nil` waits for ever.
    package var answerLimit: Duration?
    /// True if a silent server is checked, after two seconds and on another connection. Work is
    /// given up if the server does not answer in two more.
    package var feelsPulse = false
    /// True if a server without writes counts as unavailable.
    package var needsWrites = false
    /// True if a standby is preferred among several servers in the URL. Otherwise the server that
    /// takes writes is used.
    package var prefersStandby = false
    /// True if a proxy between shares the server's sessions.
    package var sharing = PostgresSharing.session
    /// Runs on each new connection before any work. If it throws, the work fails with this error,
    /// and the connection is not used.
    package var preparation: (@Sendable (PostgresConnection) throws -> Void)?

    package init() {}
  }

  /// True if the URL names several servers.
  package let namesSeveralServers: Bool
  private let queue: PoolQueue
  private let threads = ThreadGroup()

  /// Starts the threads and connects nothing yet. Throws `invalidURL`.
  ///
  /// - Parameters:
  ///   - url: `postgres://user:password@host:port/database`, or libpq's `key=value` form.
  ///   - connections: how many at most, at least 1.
  ///   - settings: for all work on these connections.
  package init(
    url: String, connections: Int, settings: PostgresSettings = .none,
    options: Options = Options()
  ) throws(PostgresError) {
    precondition(connections > 0, "a pool needs a connection")
    let target = try ConnectionTarget(url, prefersStandby: options.prefersStandby)
    namesSeveralServers = target.servers.count > 1
    let queue = PoolQueue(connections: connections, shares: options.shares)
    self.queue = queue
    let patience = PostgresPatience(
      limit: options.answerLimit, pulse: options.feelsPulse ? PostgresPulse(target) : nil)
    for number in 0..<connections {
      threads.start(name: "postgres-\(number)") {
        let slot = PoolSlot(
          target: target, settings: settings, options: options, patience: patience)
        let sleeper = DispatchSemaphore(value: 0)
        while let (job, lane, flow) = queue.next(sleeper) {
          job.run(on: slot)
          queue.finish(lane, flow)
        }
      }
    }
    if options.shares.patience != nil { threads.start(name: "postgres-queue") { queue.expire() } }
  }

  deinit { queue.close() }

  /// Runs `body` on a connection's thread; it may block there.
  ///
  /// An open transaction after `body` is rolled back. Once started, `body` runs to its end.
  ///
  /// - Throws: The errors of `body` and of the options' `preparation`, or one of these:
  ///   - `connectionFailed` if no connection can be made;
  ///   - `busy` if none gets free in time;
  ///   - `poolClosed` after `close()`;
  ///   - `CancellationError` if the task is cancelled before the work starts.
  package func run<Value: Sendable>(
    in lane: PoolLane = .push,
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws -> Value {
    let job = PoolJob(body)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        guard job.wait({ continuation.resume(with: $0) }) else {
          continuation.resume(throwing: CancellationError())
          return
        }
        queue.push(job, lane: lane, flow: .current)
      }
    } onCancel: {
      job.fail(CancellationError())
    }
  }

  /// Runs `body` as ``run(in:_:)`` does, and blocks the calling thread. The pool's threads must not
  /// call it.
  ///
  /// - Parameter limit: the longest wait for a free connection; then it throws `busy`.
  package func runBlocking<Value: Sendable>(
    waiting limit: Duration, _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) throws -> Value {
    let (job, answer) = (PoolJob(body), BlockingAnswer<Value>())
    let busy = PostgresError(.busy, "all connections to the database are in use")
    _ = job.wait { answer.resume(with: $0) }
    queue.push(job, lane: .push, flow: .current)
    let end = DispatchTime.now() + .milliseconds(Int(limit.wholeMilliseconds))
    for deadline in [end, .distantFuture] {
      if let result = answer.wait(until: deadline) { return try result.get() }
      // Begun work runs to the end.
      job.fail(busy)
    }
    throw busy
  }

  /// Work in the queue for a connection.
  package var waitingCount: Int { queue.waitingCount }

  /// Refuses new work, finishes the waiting work, and disconnects.
  package func close() async {
    queue.close()
    await threads.wait()
  }
}

import Foundation
import Synchronization

/// A serial executor on one dedicated thread, for actors with blocking C calls.
///
/// Blocking calls (SQLite, libpq) must never hold a thread of the cooperative pool. The thread ends
/// when the executor is released and its queue is empty.
package final class ThreadExecutor: SerialExecutor {
  private let queue: JobQueue

  /// Starts the thread. `name` shows in debuggers (15 bytes are kept on Linux).
  package init(name: String) {
    let queue = JobQueue()
    self.queue = queue
    Thread.start(named: name, stackSize: 1 << 20) { queue.drain() }
  }

  deinit { queue.close() }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = asUnownedSerialExecutor()
    queue.push { job.runSynchronously(on: executor) }
  }

  /// Runs one blocking closure on the thread and returns the result.
  package func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      queue.push { continuation.resume(with: Result(catching: body)) }
    }
  }
}

/// A queue, first in, first out; `drain` sleeps while the queue is empty.
private final class JobQueue: Sendable {
  private struct State {
    var jobs: [@Sendable () -> Void] = []
    var closed = false
  }

  private let state = Mutex(State())
  private let wakeups = DispatchSemaphore(value: 0)

  func push(_ job: @escaping @Sendable () -> Void) {
    state.withLock { $0.jobs.append(job) }
    wakeups.signal()
  }

  func close() {
    state.withLock { $0.closed = true }
    wakeups.signal()
  }

  func drain() {
    while true {
      wakeups.wait()
      let (jobs, closed) = state.withLock { state in
        defer { state.jobs = [] }
        return (state.jobs, state.closed)
      }
      for job in jobs { job() }
      if closed && state.withLock({ $0.jobs.isEmpty }) { return }
    }
  }
}

import Foundation
import Synchronization

/// Threads for long computations: JSON, compression.
///
/// The cooperative pool has one thread for each core. All tasks without a separate executor run
/// there, such as timers and continuations. Long work on these threads delays all of them. The
/// threads end when the executor is released and its queue is empty.
package final class ThreadPoolExecutor: TaskExecutor {
  private let queue: SharedQueue

  /// Starts the threads. `name` shows in debuggers (15 bytes are kept on Linux).
  package init(name: String, threads count: Int) {
    let queue = SharedQueue(threads: max(count, 1))
    self.queue = queue
    for _ in 0..<max(count, 1) {
      Thread.start(named: name, stackSize: 2 << 20) { queue.drain() }
    }
  }

  deinit { queue.close() }

  /// More threads than cores, so short tasks get their share beside long ones.
  package static var usualThreadCount: Int {
    max(4, ProcessInfo.processInfo.activeProcessorCount * 2)
  }

  /// Jobs in the queue.
  package var waitingCount: Int { queue.count }

  /// Runs the server's own jobs, before those of all users.
  package func enqueue(_ job: consuming ExecutorJob) {
    queue.push(UnownedJob(job), self, of: .own)
  }

  /// Returns an executor for a user's jobs on these threads. The users take turns (``FlowTurns``).
  ///
  /// ```swift
  /// Task(executorPreference: pool.executor(of: flow)) { await answer() }
  /// ```
  package func executor(of flow: WorkFlow) -> any TaskExecutor { FlowExecutor(self, flow) }

  private final class FlowExecutor: TaskExecutor {
    private let pool: ThreadPoolExecutor
    private let flow: WorkFlow

    init(_ pool: ThreadPoolExecutor, _ flow: WorkFlow) { (self.pool, self.flow) = (pool, flow) }

    func enqueue(_ job: consuming ExecutorJob) { pool.queue.push(UnownedJob(job), self, of: flow) }
  }
}

/// The turns of users, for several threads.
private final class SharedQueue: Sendable {
  private typealias Work = (job: UnownedJob, executor: any TaskExecutor)

  private struct State {
    var turns = FlowTurns<Work>()
    var isClosed = false
  }

  private let state = Mutex(State())
  /// One signal for each job, and one for each thread when the queue closes.
  private let wakeups = DispatchSemaphore(value: 0)
  private let threadCount: Int

  init(threads: Int) {
    threadCount = threads
  }

  var count: Int { state.withLock { $0.turns.count } }

  func push(_ job: UnownedJob, _ executor: any TaskExecutor, of flow: WorkFlow) {
    state.withLock { $0.turns.add((job, executor), of: flow) }
    wakeups.signal()
  }

  func close() {
    state.withLock { $0.isClosed = true }
    for _ in 0..<threadCount { wakeups.signal() }
  }

  func drain() {
    while true {
      wakeups.wait()
      let (next, isOver) = state.withLock { state in
        let next = state.turns.removeNext()
        return (next, next == nil && state.isClosed)
      }
      if let next { next.job.runSynchronously(on: next.executor.asUnownedTaskExecutor()) }
      if isOver { return }
    }
  }
}

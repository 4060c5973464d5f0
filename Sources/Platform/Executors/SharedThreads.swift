import Foundation
import Synchronization

/// Threads shared by many executors for blocking work, such as the files of many replicas.
///
/// Each executor runs one job at a time, in order, as a `ThreadExecutor` does; two jobs may run on
/// different threads. The executors take turns: after each job, the next executor with work begins.
/// A job that blocks holds one of the threads. The threads end when all executors are released.
///
/// ```swift
/// let threads = SharedThreads(name: "ferry-replica", count: 8)
/// let executor = threads.makeExecutor()
/// try await executor.run { try file.read() }
/// ```
package final class SharedThreads: Sendable {
  private let queue: LaneQueue

  /// Starts the threads. `name` shows in debuggers (15 bytes are kept on Linux).
  package init(name: String, count: Int) {
    precondition(count > 0, "work needs a thread")
    let queue = LaneQueue(threads: count)
    self.queue = queue
    for _ in 0..<count {
      Thread.start(named: name, stackSize: 1 << 20) { queue.drain() }
    }
  }

  deinit { queue.close() }

  /// Returns a new executor on these threads.
  package func makeExecutor() -> any WorkExecutor { Lane(threads: self, queue: queue) }
}

/// An executor on shared threads.
private final class Lane: WorkExecutor {
  typealias Job = @Sendable () -> Void

  private struct State {
    var jobs: [Job] = []
    /// True while the lane is in the queue, or one of its jobs runs.
    var isBusy = false
  }

  /// The threads live as long as the executors.
  private let threads: SharedThreads
  private let queue: LaneQueue
  private let state = Mutex(State())

  init(threads: SharedThreads, queue: LaneQueue) { (self.threads, self.queue) = (threads, queue) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    push { [self] in job.runSynchronously(on: asUnownedSerialExecutor()) }
  }

  func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      push { continuation.resume(with: Result(catching: body)) }
    }
  }

  private func push(_ job: @escaping Job) {
    let isFirst = state.withLock { state in
      state.jobs.append(job)
      defer { state.isBusy = true }
      return !state.isBusy
    }
    if isFirst { queue.push(self) }
  }

  /// Runs the oldest job.
  func runNext() {
    let job = state.withLock { $0.jobs.isEmpty ? nil : $0.jobs.removeFirst() }
    job?()
    let hasMore = state.withLock { state in
      state.isBusy = !state.jobs.isEmpty
      return state.isBusy
    }
    if hasMore { queue.push(self) }
  }
}

/// Executors with work, in the order in which they came.
private final class LaneQueue: Sendable {
  private struct State {
    var lanes: [Lane] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  /// One signal for each lane, and one for each thread when the queue closes.
  private let wakeups = DispatchSemaphore(value: 0)
  private let threadCount: Int

  init(threads: Int) { threadCount = threads }

  func push(_ lane: Lane) {
    state.withLock { $0.lanes.append(lane) }
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
        let next = state.lanes.isEmpty ? nil : state.lanes.removeFirst()
        return (next, next == nil && state.isClosed)
      }
      next?.runNext()
      if isOver { return }
    }
  }
}

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

  package func enqueue(_ job: consuming ExecutorJob) {
    queue.push(UnownedJob(job), asUnownedTaskExecutor())
  }
}

/// First in, first out, for several threads.
private final class SharedQueue: Sendable {
  private struct State {
    var jobs: [(job: UnownedJob, executor: UnownedTaskExecutor)?] = []
    /// Where the next job is; those before are done.
    var next = 0
    var isClosed = false

    mutating func dequeue() -> (job: UnownedJob, executor: UnownedTaskExecutor)? {
      guard next < jobs.count else { return nil }
      defer { next += 1 }
      let job = jobs[next].take()
      if next + 1 == jobs.count {
        jobs.removeAll(keepingCapacity: jobs.count <= 1_024)
        next = -1
      } else if next >= 1_024 {
        jobs.removeFirst(next + 1)
        next = -1
      }
      return job
    }
  }

  private let state = Mutex(State())
  /// One signal for each job, and one for each thread when the queue closes.
  private let wakeups = DispatchSemaphore(value: 0)
  private let threadCount: Int

  init(threads: Int) {
    threadCount = threads
  }

  func push(_ job: UnownedJob, _ executor: UnownedTaskExecutor) {
    state.withLock { $0.jobs.append((job, executor)) }
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
        let next = state.dequeue()
        return (next, next == nil && state.isClosed)
      }
      if let next { next.job.runSynchronously(on: next.executor) }
      if isOver { return }
    }
  }
}

import FerryPlatform
import Foundation
import Synchronization

/// Runs everything of one simulated world on one thread, in virtual time.
///
/// Tasks with this executor run here in the order in which they become ready. If none is ready,
/// time leaps to the next timer. Nothing depends on the speed of the machine, so a seed gives the
/// same run byte for byte.
// SAFETY: all state but `inbox` is touched only on `thread`, which `enqueue` looks at: jobs from
// elsewhere (a real database's threads) go through the locked inbox.
package final class Scheduler: TaskExecutor, SerialExecutor, @unchecked Sendable {
  /// Microseconds of virtual time since the start.
  package private(set) var now: Int64 = 0
  /// Jobs and timers run so far.
  package fileprivate(set) var steps = 0

  private let thread = pthread_self()
  private var ready: [UnownedJob] = []
  private var readyHead = 0
  private var timers = TimerQueue()
  fileprivate let inbox = Mutex<[UnownedJob]>([])
  fileprivate let arrived = DispatchSemaphore(value: 0)
  /// True if something outside of virtual time is awaited.
  private var isStandingStill = false

  package init() {}

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if pthread_equal(thread, pthread_self()) != 0 && !isStandingStill {
      ready.append(job)
    } else {
      inbox.withLock { $0.append(job) }
      arrived.signal()
    }
  }

  package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    UnownedSerialExecutor(ordinary: self)
  }

  // MARK: Timers

  /// Calls `action` when `delay` microseconds have passed.
  @discardableResult
  package func after(_ delay: Int64, _ action: @escaping () -> Void) -> TimerNumber {
    timers.add(at: now + max(0, delay), action)
  }

  /// Cancels a timer: the action is not called any more.
  package func cancel(_ timer: TimerNumber) { timers.cancel(timer) }

  /// Waits in virtual time; throws `CancellationError` at once when the task is cancelled.
  package func sleep(_ duration: Duration) async throws {
    let sleeper = Sleeper()
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (waiter: CheckedContinuation<Void, any Error>) in
        guard !sleeper.isCancelled else { return waiter.resume(throwing: CancellationError()) }
        sleeper.waiter = waiter
        sleeper.timer = after(duration.microseconds) { sleeper.wake() }
      }
    } onCancel: {
      if let timer = sleeper.timer { cancel(timer) }
      sleeper.cancel()
    }
  }

  // MARK: Running

  /// Starts a task here.
  @discardableResult
  package func task(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    Task(executorPreference: self) { await body() }
  }

  /// Waits for an event outside of virtual time, such as a real database's response: until then,
  /// time stops and no other job runs.
  package func standStill<T: Sendable, E: Error>(
    _ body: () async throws(E) -> T
  ) async throws(E) -> T {
    precondition(!isStandingStill, "nothing else runs while time stands still")
    isStandingStill = true
    defer { isStandingStill = false }
    return try await body()
  }

  /// Runs until `isDone`, or until no job is left, or for `limit` steps. Returns whether it is
  /// done.
  package func run(limit: Int, until isDone: () -> Bool) -> Bool {
    let end = steps + limit
    while steps < end {
      runReady(until: end)
      if isStandingStill {
        runArrived()
        continue
      }
      if isDone() { return true }
      guard let timer = timers.next() else { return isDone() }
      steps += 1
      now = max(now, timer.at)
      timer.action()
    }
    return false
  }

  private func runReady(until end: Int) {
    while readyHead < ready.count && steps < end && !isStandingStill {
      let job = ready[readyHead]
      readyHead += 1
      run(job)
      if readyHead == ready.count {
        ready.removeAll(keepingCapacity: true)
        readyHead = 0
      }
    }
  }
}

extension Scheduler {
  /// Waits for a job from outside, and runs it alone.
  private func runArrived() {
    arrived.wait()
    let jobs = inbox.withLock { jobs in
      defer { jobs = [] }
      return jobs
    }
    for job in jobs { run(job) }
  }

  private func run(_ job: UnownedJob) {
    steps += 1
    job.runSynchronously(
      isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
  }
}

/// A waiting task of ``Scheduler/sleep(_:)``.
// SAFETY: touched on the scheduler's thread only; tasks are cancelled there too.
private final class Sleeper: @unchecked Sendable {
  var waiter: CheckedContinuation<Void, any Error>?
  var timer: TimerNumber?
  private(set) var isCancelled = false

  func wake() {
    waiter?.resume()
    waiter = nil
  }

  func cancel() {
    isCancelled = true
    waiter?.resume(throwing: CancellationError())
    waiter = nil
  }
}

extension Duration {
  /// Whole microseconds.
  var microseconds: Int64 {
    components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
  }
}

import FerryConformance
import FerryPlatform

/// A process's executor for blocking work. It does one job after another, and each takes a little
/// virtual time, so other work comes between. When the process dies, no more work is done.
// SAFETY: touched on the scheduler's thread only.
package final class Processor: WorkExecutor, @unchecked Sendable {
  /// The process was killed while it had work to do.
  package struct Died: Error {}

  private let scheduler: Scheduler
  private var random: SeededRandom
  private var freeAt: Int64 = 0
  private let isAlive: () -> Bool

  package init(_ scheduler: Scheduler, random: SeededRandom, isAlive: @escaping () -> Bool) {
    self.scheduler = scheduler
    self.random = random
    self.isAlive = isAlive
  }

  package func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      // Half of all work is done at once, the rest within two milliseconds.
      let delay = random.chance(1, in: 2) ? 0 : Int64(random.below(2_000))
      freeAt = max(freeAt, scheduler.now) + delay
      scheduler.after(freeAt - scheduler.now) { [self] in
        continuation.resume(
          with: isAlive() ? Result(catching: body) : .failure(Died()))
      }
    }
  }

  package func enqueue(_ job: consuming ExecutorJob) { scheduler.enqueue(job) }

  package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    scheduler.asUnownedSerialExecutor()
  }
}

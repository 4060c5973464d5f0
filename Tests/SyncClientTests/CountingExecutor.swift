import FerryPlatform
import Foundation
import Synchronization

/// An executor that counts the work in the queue from the start on.
final class CountingExecutor: WorkExecutor {
  private let queue: DispatchQueue
  private let count = Mutex(0)

  init(_ name: String) { queue = DispatchQueue(label: name) }

  /// The calls in the queue so far.
  var queued: Int { count.withLock { $0 } }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = asUnownedSerialExecutor()
    queue.async { job.runSynchronously(on: executor) }
  }

  func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result(catching: body)) }
      count.withLock { $0 += 1 }
    }
  }
}

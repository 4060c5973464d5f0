import Synchronization

/// Notifies a thread about the cancellation of the task that waits for it.
package final class CancellationFlag: Sendable {
  private let flag = Atomic(false)

  package init() {}

  package var isSet: Bool { flag.load(ordering: .relaxed) }

  package func set() { flag.store(true, ordering: .relaxed) }

  /// Runs work that checks the flag, and sets the flag when this task is cancelled.
  package static func whileRunning<T: Sendable>(
    _ body: (CancellationFlag) async throws -> T
  ) async throws -> T {
    let flag = CancellationFlag()
    return try await withTaskCancellationHandler {
      try await body(flag)
    } onCancel: {
      flag.set()
    }
  }
}

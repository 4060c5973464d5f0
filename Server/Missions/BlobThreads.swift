import FerryPlatform
import Synchronization

/// A blob directory with its own threads: its calls block, and would delay the pool of requests.
package final class BlobThreads: Sendable {
  package let directory: BlobDirectory
  private let executors: [any WorkExecutor]
  // A call that waits for a hold may wait for a publisher, which needs the other threads. The
  // collector waits for publishers. So neither may block the other.
  private let publishing: any WorkExecutor
  private let collecting: any WorkExecutor
  // Hashing a large upload takes as long as all other requests of a day. So it has a separate
  // thread, and no reader waits for it.
  private let checking: any WorkExecutor
  private let next = Atomic(0)

  /// - Parameters:
  ///   - threads: How many calls may block at once.
  ///   - makeExecutor: A place for blocking work, by a name for debuggers.
  package init(
    _ directory: BlobDirectory, threads: Int = 4,
    makeExecutor: (String) -> any WorkExecutor = { ThreadExecutor(name: $0) }
  ) {
    self.directory = directory
    executors = (0..<threads).map { _ in makeExecutor("ferry-blobs") }
    publishing = makeExecutor("ferry-hold")
    collecting = makeExecutor("ferry-collect")
    checking = makeExecutor("ferry-check")
  }

  /// Runs a blocking `body` on one of the threads. `body` can see when the calling task was
  /// cancelled.
  package func run<T: Sendable>(
    _ body: @escaping @Sendable (BlobDirectory, Cancellation) throws(BlobError) -> T
  ) async throws(BlobError) -> T {
    let turn = next.wrappingAdd(1, ordering: .relaxed).newValue
    return try await run(on: executors[Int(turn.magnitude % UInt(executors.count))], body)
  }

  /// Appends like ``BlobDirectory/append(_:at:to:)``. Slow work is a check of the whole, or a wait
  /// for another caller of the upload. It delays only other work of the same kind.
  package func append(
    _ bytes: [UInt8], at offset: Int64, to upload: BlobDirectory.Upload
  ) async throws(BlobError) -> Int64 {
    let end = try await run { (directory, _) throws(BlobError) in
      try directory.appendQuickly(bytes, at: offset, to: upload)
    }
    if let end { return end }
    return try await run(on: checking) { (directory, _) throws(BlobError) in
      try directory.append(bytes, at: offset, to: upload)
    }
  }

  /// Runs a slow `body`, such as a check of a large content. It delays only other work of the same
  /// kind.
  package func runSlowly<T: Sendable>(
    _ body: @escaping @Sendable () throws(BlobError) -> T
  ) async throws(BlobError) -> T {
    try await run(on: checking) { (_, _) throws(BlobError) in try body() }
  }

  /// See ``BlobDirectory/acquire()``.
  package func acquire() async throws(BlobError) -> BlobHold {
    try await run(on: publishing) { (directory, _) throws(BlobError) in try directory.acquire() }
  }

  /// See ``BlobDirectory/acquireForCollecting()``.
  package func acquireForCollecting() async throws(BlobError) -> BlobHold {
    try await run(on: collecting) { (directory, _) throws(BlobError) in
      try directory.acquireForCollecting()
    }
  }

  private func run<T: Sendable>(
    on executor: any WorkExecutor,
    _ body: @escaping @Sendable (BlobDirectory, Cancellation) throws(BlobError) -> T
  ) async throws(BlobError) -> T {
    let (directory, cancellation) = (directory, Cancellation())
    do {
      return try await withTaskCancellationHandler {
        try await executor.run { try body(directory, cancellation) }
      } onCancel: {
        cancellation.cancel()
      }
    } catch let error as BlobError {
      throw error
    } catch {
      // The process of the call is over.
      throw .cancelled
    }
  }
}

/// The cancellation of the task that waits for a blocking call.
package final class Cancellation: Sendable {
  private let isOver = Atomic(false)

  package init() {}

  package var isCancelled: Bool { isOver.load(ordering: .relaxed) }

  package func cancel() { isOver.store(true, ordering: .relaxed) }
}

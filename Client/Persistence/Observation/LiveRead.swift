import FerrySQLite
import Synchronization

/// A query, run again after each change of the rows it reads, as far as they are known.
package struct LiveRead: Sendable {
  package let readers: ReaderPool
  package let hub: ChangeHub
  let gate: WorkGate
  /// Returns the error of a query of a closed file.
  let closed: @Sendable () -> any Error

  package init(
    readers: ReaderPool, hub: ChangeHub, gate: WorkGate, closed: @escaping @Sendable () -> any Error
  ) {
    (self.readers, self.hub, self.gate, self.closed) = (readers, hub, gate, closed)
  }

  /// Returns the results of a query: the present one, and each later, different one. A slow
  /// consumer gets the newest. The stream ends with the error of the query, or without one when the
  /// file is closed. While the file is suspended, the query waits.
  ///
  /// - Parameter isSame: compares a result with the one before.
  package func values<T: Sendable>(
    of fetch: @escaping @Sendable (Database) throws -> T,
    unless isSame: @escaping @Sendable (_ old: T, _ new: T) -> Bool
  ) -> AsyncThrowingStream<T, any Error> {
    AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let plan = SharedPlan()
      let number = hub.add(
        ChangeHub.Listener { changed in
          if plan.plan.withLock({ $0.change(changed) }) { plan.wake.yield() }
        } needsRows: { table in
          plan.plan.withLock { $0.needsRows(of: table) }
        } close: {
          continuation.finish()
        })
      guard !gate.isClosed else {
        hub.remove(number)
        return continuation.finish(throwing: closed())
      }
      let task = Task {
        do {
          var last: T?
          for await _ in plan.wakes {
            repeat {
              plan.plan.withLock { $0.begin() }
              let (value, region) = try await read(fetch)
              if last.map({ !isSame($0, value) }) ?? true { continuation.yield(value) }
              last = value
              if !plan.plan.withLock({ $0.end(region) }) { break }
            } while !Task.isCancelled
          }
        } catch StoppedWork.closed {
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { [hub] _ in
        hub.remove(number)
        task.cancel()
        plan.wake.finish()
      }
      plan.wake.yield()
    }
  }

  /// Reads the value and the part of the file it depends on. Reads again after a suspension, and
  /// for as long as another program locks the file.
  private func read<T: Sendable>(
    _ fetch: @escaping @Sendable (Database) throws -> T
  ) async throws -> (T, ReadRegion) {
    while true {
      do {
        return try await readers.read { (try fetch($0), $0.region) }
      } catch StoppedWork.suspended {
        try await gate.opened()
      } catch let error as SQLiteError where error.isBusy {
        try Task.checkCancellation()
      } catch let error as DatabaseError where error.isBusy {
        try Task.checkCancellation()
      }
    }
  }
}

/// The plan of a live query, and the signal to run it. Several signals count as one.
private final class SharedPlan: Sendable {
  let plan = Mutex(RefreshPlan())
  let wakes: AsyncStream<Void>
  let wake: AsyncStream<Void>.Continuation

  init() { (wakes, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }
}

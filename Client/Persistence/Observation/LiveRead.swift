import Synchronization

/// A query that runs again after each change of the tables that it reads.
package struct LiveRead: Sendable {
  package let readers: ReaderPool
  package let hub: ChangeHub

  package init(readers: ReaderPool, hub: ChangeHub) { (self.readers, self.hub) = (readers, hub) }

  /// Returns the results of a query: the present one, and each later one that `isNews` accepts. A
  /// consumer that is slow gets the newest. The stream ends with the error of the query.
  ///
  /// - Parameter isNews: compares a result with the one before.
  package func values<T: Sendable>(
    of fetch: @escaping @Sendable (Database) throws -> T,
    unless isSame: @escaping @Sendable (_ old: T, _ new: T) -> Bool
  ) -> AsyncThrowingStream<T, any Error> {
    AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let plan = SharedPlan()
      let number = hub.add { changed in
        if plan.plan.withLock({ $0.change(changed) }) { plan.wake.yield() }
      }
      let task = Task {
        do {
          var last: T?
          for await _ in plan.wakes {
            repeat {
              plan.plan.withLock { $0.begin() }
              let (value, tables) = try await readers.read { (try fetch($0), $0.tablesRead) }
              if last.map({ !isSame($0, value) }) ?? true { continuation.yield(value) }
              last = value
              if !plan.plan.withLock({ $0.end(tables) }) { break }
            } while !Task.isCancelled
          }
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
}

/// The plan of a live query, and the signal to run it. Several signals count as one.
private final class SharedPlan: Sendable {
  let plan = Mutex(RefreshPlan())
  let wakes: AsyncStream<Void>
  let wake: AsyncStream<Void>.Continuation

  init() { (wakes, wake) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }
}

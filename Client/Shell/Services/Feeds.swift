import FerrySyncClient
import Synchronization

/// Streams of results for live queries.
enum Feeds {
  /// Returns the values of a stream as results.
  static func mapped<Value: Sendable>(
    _ values: AsyncThrowingStream<Value, any Error>,
    _ transform: @escaping @Sendable (Value) throws -> ServiceValue
  ) -> AsyncThrowingStream<ServiceValue, any Error> {
    stream { yield in
      for try await value in values { yield(try transform(value)) }
    }
  }

  /// Returns the present result, and another one after each signal with a change.
  static func reread(
    on signals: AsyncThrowingStream<Void, any Error>,
    _ read: @escaping @Sendable () async throws -> ServiceValue
  ) -> AsyncThrowingStream<ServiceValue, any Error> {
    stream { yield in
      var last: ServiceValue?
      for try await _ in signals {
        let value = try await read()
        if value != last { yield(value) }
        last = value
      }
    }
  }

  /// Returns a signal for each element of a sequence, after the element was recorded. Several
  /// signals count as one.
  static func signals<Elements: AsyncSequence & Sendable>(
    _ elements: Elements, _ note: @escaping @Sendable (Elements.Element) -> Void
  ) -> AsyncThrowingStream<Void, any Error> {
    stream { yield in
      for try await element in elements {
        note(element)
        yield(())
      }
    }
  }

  /// Returns the signals of all streams, until the last one ends.
  static func merged(
    _ all: [AsyncThrowingStream<Void, any Error>]
  ) -> AsyncThrowingStream<Void, any Error> {
    stream { yield in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for signals in all {
          group.addTask { for try await _ in signals { yield(()) } }
        }
        try await group.waitForAll()
      }
    }
  }

  /// Returns a stream filled by work, newest element first kept, until the consumer stops.
  static func stream<Element: Sendable>(
    _ work:
      @escaping @Sendable (_ yield: @escaping @Sendable (Element) -> Void) async throws -> Void
  ) -> AsyncThrowingStream<Element, any Error> {
    AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let task = Task {
        do {
          try await work { continuation.yield($0) }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }
}

/// The newest activity of a replica.
final class LatestActivity: Sendable {
  private let latest = Mutex<SyncActivity?>(nil)

  var activity: SyncActivity? { latest.withLock { $0 } }

  func set(_ activity: SyncActivity) { latest.withLock { $0 = activity } }
}

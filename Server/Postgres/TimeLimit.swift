import Synchronization

/// Returns the result of `work`, or throws `noAnswer` after the limit. The work then still runs to
/// the end.
package func withinLimit<Value: Sendable>(
  _ limit: Duration, _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
  let race = Race<Value>()
  return try await withCheckedThrowingContinuation { continuation in
    race.waiter.withLock { $0 = continuation }
    let timer = Task {
      try await Task.sleep(for: limit)
      race.end(.failure(PostgresError(.noAnswer, "the server did not answer in \(limit)")))
    }
    Task {
      do {
        race.end(.success(try await work()))
      } catch {
        race.end(.failure(error))
      }
      timer.cancel()
    }
  }
}

/// A caller and the possible answers: the first one counts.
private final class Race<Value: Sendable>: Sendable {
  let waiter = Mutex<CheckedContinuation<Value, any Error>?>(nil)

  func end(_ result: Result<Value, any Error>) {
    let continuation = waiter.withLock { waiter in
      defer { waiter = nil }
      return waiter
    }
    continuation?.resume(with: result)
  }
}

import Synchronization

/// One request for concurrent callers with the same key.
///
/// A cancelled caller returns at once. The request ends when the last caller has left, unless it
/// must run to the end.
package final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  package typealias Outcome = Result<Value, NetworkError>

  private struct Flight {
    let number: Int
    var task: Task<Void, Never>?
    var waiting: [Int: CheckedContinuation<Outcome, Never>] = [:]
  }

  private struct State {
    var flights: [Key: Flight] = [:]
    /// Callers that left before they began to wait.
    var left: Set<Int> = []
    var number = 0

    mutating func nextNumber() -> Int {
      number += 1
      return number
    }
  }

  private let endsWithLastCaller: Bool
  private let state = Mutex(State())

  /// Creates a place for shared requests.
  ///
  /// - Parameter endsWithLastCaller: true to cancel a request without a waiting caller.
  package init(endsWithLastCaller: Bool = true) { self.endsWithLastCaller = endsWithLastCaller }

  /// Runs `body` once for all concurrent calls with `key`. Returns its result.
  package func run(
    _ key: Key, _ body: @escaping @Sendable () async throws(NetworkError) -> Value
  ) async throws(NetworkError) -> Value {
    let passenger = state.withLock { $0.nextNumber() }
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { join(key, passenger, $0, body) }
    } onCancel: {
      leave(key, passenger)
    }
    state.withLock { _ = $0.left.remove(passenger) }
    return try outcome.get()
  }

  /// Returns the number of callers waiting for a key.
  package func waiting(_ key: Key) -> Int { state.withLock { $0.flights[key]?.waiting.count ?? 0 } }

  private func join(
    _ key: Key, _ passenger: Int, _ continuation: CheckedContinuation<Outcome, Never>,
    _ body: @escaping @Sendable () async throws(NetworkError) -> Value
  ) {
    let isGone = state.withLock { state in
      if state.left.remove(passenger) != nil { return true }
      if state.flights[key] == nil {
        let number = state.nextNumber()
        let task = Task { [self] in
          let outcome: Outcome
          do throws(NetworkError) {
            outcome = .success(try await body())
          } catch {
            outcome = .failure(error)
          }
          land(key, number, outcome)
        }
        state.flights[key] = Flight(number: number, task: task)
      }
      state.flights[key]?.waiting[passenger] = continuation
      return false
    }
    if isGone { continuation.resume(returning: .failure(.leftWaiting)) }
  }

  private func leave(_ key: Key, _ passenger: Int) {
    let continuation = state.withLock { state in
      guard let continuation = state.flights[key]?.waiting.removeValue(forKey: passenger) else {
        // Either the flight has landed or the caller does not wait yet; a landed flight ignores the
        // entry.
        state.left.insert(passenger)
        return nil as CheckedContinuation<Outcome, Never>?
      }
      if endsWithLastCaller, let flight = state.flights[key], flight.waiting.isEmpty {
        flight.task?.cancel()
        state.flights[key] = nil
      }
      return continuation
    }
    continuation?.resume(returning: .failure(.leftWaiting))
  }

  private func land(_ key: Key, _ number: Int, _ outcome: Outcome) {
    let flight = state.withLock { state in
      guard state.flights[key]?.number == number else { return nil as Flight? }
      return state.flights.removeValue(forKey: key)
    }
    for passenger in (flight?.waiting ?? [:]).keys.sorted() {
      flight?.waiting[passenger]?.resume(returning: outcome)
    }
  }
}

extension NetworkError {
  fileprivate static var leftWaiting: NetworkError {
    NetworkError(.cancelled, "the request was cancelled while it waited for its answer")
  }
}

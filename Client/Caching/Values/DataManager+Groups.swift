import FerryNetworking
import Synchronization

extension DataManager {
  /// Runs several requests side by side, and returns their values. The first error ends the others
  /// and is thrown.
  ///
  /// ```swift
  /// let (user, shops) = try await manager.values(
  ///   NetworkRequest("/me").answer(User.self), NetworkRequest("/shops").answer([Shop].self))
  /// ```
  public func values<each Value: Decodable & Sendable>(
    _ requests: repeat ValueRequest<each Value>
  ) async throws(NetworkError) -> (repeat each Value) {
    let group = RequestGroup()
    let tasks = (repeat group.start(each requests, of: self, endsOthers: true))
    do {
      return try await withTaskCancellationHandler {
        (repeat try await group.value(of: each tasks))
      } onCancel: {
        group.cancel()
      }
    } catch {
      throw error as? NetworkError ?? NetworkError(.other, String(describing: error))
    }
  }

  /// Runs several requests side by side, and returns their results; none ends another.
  ///
  /// ```swift
  /// let (user, shops) = await manager.results(
  ///   NetworkRequest("/me").answer(User.self), NetworkRequest("/shops").answer([Shop].self))
  /// ```
  public func results<each Value: Decodable & Sendable>(
    _ requests: repeat ValueRequest<each Value>
  ) async -> (repeat Result<each Value, NetworkError>) {
    let group = RequestGroup()
    let tasks = (repeat group.start(each requests, of: self, endsOthers: false))
    return await withTaskCancellationHandler {
      (repeat await (each tasks).value)
    } onCancel: {
      group.cancel()
    }
  }

  /// Returns the values of requests of one type, in their order. The first error ends the others
  /// and is thrown.
  ///
  /// - Parameter atOnce: the most requests at one time.
  public func values<Value: Decodable & Sendable>(
    for requests: [ValueRequest<Value>], atOnce: Int = 8
  ) async throws(NetworkError) -> [Value] {
    var values: [Value] = []
    for result in await run(requests, atOnce: atOnce, stopsAtError: true) {
      // A stopped request has no result of interest.
      if let result { values.append(try result.get()) }
    }
    return values
  }

  /// Returns the results of requests of one type, in their order; none ends another.
  ///
  /// - Parameter atOnce: the most requests at one time.
  public func results<Value: Decodable & Sendable>(
    for requests: [ValueRequest<Value>], atOnce: Int = 8
  ) async -> [Result<Value, NetworkError>] {
    await run(requests, atOnce: atOnce, stopsAtError: false).map { $0 ?? .failure(.stopped) }
  }

  /// Runs requests, at most `atOnce` of them at one time. An error that stops the others is the
  /// only result.
  private func run<Value: Decodable & Sendable>(
    _ requests: [ValueRequest<Value>], atOnce: Int, stopsAtError: Bool
  ) async -> [Result<Value, NetworkError>?] {
    typealias Outcome = Result<Value, NetworkError>
    return await withTaskGroup(of: (Int, Outcome).self) { group in
      var results = [Outcome?](repeating: nil, count: requests.count)
      var waiting = requests.enumerated().makeIterator()
      func startNext() {
        guard let (index, request) = waiting.next() else { return }
        group.addTask { (index, await outcome(of: request)) }
      }
      for _ in 0..<max(1, atOnce) { startNext() }
      while let (index, outcome) = await group.next() {
        if case .failure = outcome, stopsAtError {
          group.cancelAll()
          return [outcome]
        }
        results[index] = outcome
        startNext()
      }
      return results
    }
  }

  /// Returns the result of one request.
  fileprivate func outcome<Value: Decodable & Sendable>(
    of request: ValueRequest<Value>
  ) async -> Result<Value, NetworkError> {
    do throws(NetworkError) {
      return .success(try await value(for: request))
    } catch {
      return .failure(error)
    }
  }
}

/// Requests of different types, side by side.
private final class RequestGroup: Sendable {
  private struct State {
    var isCancelled = false
    var firstError: NetworkError?
    var cancellations: [@Sendable () -> Void] = []
  }

  private let state = Mutex(State())

  /// Starts a request; a failure of it ends the others if `endsOthers`.
  func start<Value: Decodable & Sendable>(
    _ request: ValueRequest<Value>, of manager: DataManager, endsOthers: Bool
  ) -> Task<Result<Value, NetworkError>, Never> {
    let task = Task {
      let outcome = await manager.outcome(of: request)
      if case .failure(let error) = outcome, endsOthers { self.fail(error) }
      return outcome
    }
    let isCancelled = state.withLock { state in
      state.cancellations.append { task.cancel() }
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
    return task
  }

  /// Waits for a value; throws the group's first error if there is none.
  func value<Value: Sendable>(
    of task: Task<Result<Value, NetworkError>, Never>
  ) async throws(NetworkError) -> Value {
    switch await task.value {
    case .success(let value): return value
    case .failure(let error): throw state.withLock { $0.firstError } ?? error
    }
  }

  /// Ends all requests.
  func cancel() {
    let cancellations = state.withLock { state in
      state.isCancelled = true
      return state.cancellations
    }
    for cancel in cancellations { cancel() }
  }

  private func fail(_ error: NetworkError) {
    state.withLock { $0.firstError = $0.firstError ?? error }
    cancel()
  }
}

extension NetworkError {
  fileprivate static var stopped: NetworkError {
    NetworkError(.cancelled, "the request was stopped")
  }
}

import Foundation
import Synchronization

/// Work for one of the pool's connections.
protocol PoolWork: Sendable {
  /// Runs on a connection's thread, and answers the caller.
  func run(on connection: PoolSlot)
}

/// Jobs in the order of arrival, for several threads.
final class PoolQueue: Sendable {
  private struct State {
    var jobs: [(any PoolWork)?] = []
    /// Jobs before this index are taken, and nil.
    var head = 0
    var isClosed = false

    mutating func take() -> (any PoolWork)? {
      guard head < jobs.count else { return nil }
      let job = jobs[head]
      jobs[head] = nil
      head += 1
      if head > 64 && head * 2 > jobs.count {
        jobs.removeFirst(head)
        head = 0
      }
      return job
    }
  }

  private let state = Mutex(State())
  private let wakeups = DispatchSemaphore(value: 0)

  /// Answers false when the queue is closed.
  func push(_ job: any PoolWork) -> Bool {
    let isAccepted = state.withLock { state in
      if !state.isClosed { state.jobs.append(job) }
      return !state.isClosed
    }
    if isAccepted { wakeups.signal() }
    return isAccepted
  }

  /// Waits for a job; nil when the queue is closed and empty.
  func next() -> (any PoolWork)? {
    wakeups.wait()
    let job = state.withLock { $0.take() }
    // Pass the end on to the next thread.
    if job == nil { wakeups.signal() }
    return job
  }

  func close() {
    state.withLock { $0.isClosed = true }
    wakeups.signal()
  }
}

/// One call of `PostgresPool.run`: it waits, and then runs or is cancelled, never both.
final class PoolJob<Value: Sendable>: PoolWork {
  private enum Phase {
    case new
    case waiting(CheckedContinuation<Value, any Error>)
    case taken
  }

  private let phase = Mutex(Phase.new)
  private let body: @Sendable (PostgresConnection) throws -> Value

  init(_ body: @escaping @Sendable (PostgresConnection) throws -> Value) { self.body = body }

  /// Answers false when the job was cancelled before.
  func wait(_ continuation: CheckedContinuation<Value, any Error>) -> Bool {
    phase.withLock { phase in
      guard case .new = phase else { return false }
      phase = .waiting(continuation)
      return true
    }
  }

  func run(on slot: PoolSlot) {
    guard let continuation = take() else { return }
    continuation.resume(with: Result { try slot.use(body) })
  }

  /// Ends the job with an error if it has not started.
  func fail(_ error: any Error) {
    take()?.resume(throwing: error)
  }

  private func take() -> CheckedContinuation<Value, any Error>? {
    phase.withLock { phase in
      defer { phase = .taken }
      return if case .waiting(let continuation) = phase { continuation } else { nil }
    }
  }
}

/// One thread's connection: opened at the first use, and again when it is broken.
final class PoolSlot {
  private let target: ConnectionTarget
  private let prepareConnection: [String]
  private var connection: PostgresConnection?

  init(target: ConnectionTarget, prepareConnection: [String]) {
    self.target = target
    self.prepareConnection = prepareConnection
  }

  /// Lends the connection, and leaves it outside any transaction.
  func use<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value {
    let connection = try open()
    defer {
      connection.reset()
      if connection.isStale { self.connection = nil }
    }
    return try body(connection)
  }

  private func open() throws(PostgresError) -> PostgresConnection {
    if let connection, connection.isUsable { return connection }
    connection = nil
    let new = try PostgresConnection(target: target, prepareConnection: prepareConnection)
    connection = new
    return new
  }
}

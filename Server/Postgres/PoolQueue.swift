import Foundation
import Synchronization

/// Work for one of the pool's connections.
protocol PoolWork: Sendable {
  /// Runs on a connection's thread, and answers the caller.
  func run(on connection: PoolSlot)
  /// Ends the work with an error if it has not started.
  func fail(_ error: any Error)
}

/// The queue from which several threads take their work.
///
/// A thread that has finished looks for more before it sleeps. So it is enough that each new piece
/// of work wakes one thread.
final class PoolQueue: Sendable {
  private struct State {
    var schedule: PoolSchedule<any PoolWork>
    var isClosed = false
  }

  private let state: Mutex<State>
  private let wakeups = DispatchSemaphore(value: 0)
  /// Wakes the thread that ends work that has waited for too long.
  private let alarm = DispatchSemaphore(value: 0)
  private let start = ContinuousClock.now

  init(connections: Int, shares: PoolShares) {
    state = Mutex(State(schedule: PoolSchedule(connections: connections, shares: shares)))
  }

  private var now: Duration { .now - start }

  /// Fails the job at once if the queue is closed or full.
  func push(_ job: any PoolWork, lane: PoolLane) {
    let fault = state.withLock { state -> PostgresError? in
      if state.isClosed { return PostgresError(.poolClosed, "the connection pool is closed") }
      return state.schedule.add(job, lane: lane, now: now)
        ? nil : PostgresError(.busy, "too many jobs wait for the database's connections")
    }
    if let fault { return job.fail(fault) }
    wakeups.signal()
    alarm.signal()
  }

  /// Waits for a job; `nil` if the queue is closed and empty.
  func next() -> (job: any PoolWork, lane: PoolLane)? {
    while true {
      let (taken, isOver) = state.withLock { state in
        (state.schedule.take(), state.isClosed && state.schedule.isEmpty)
      }
      if let taken { return taken }
      if isOver { break }
      wakeups.wait()
    }
    // Pass the end on to the next thread.
    wakeups.signal()
    alarm.signal()
    return nil
  }

  func finish(_ lane: PoolLane) { state.withLock { $0.schedule.finish(lane) } }

  /// Ends work that has waited for too long, until the queue is closed and empty.
  func expire() {
    while true {
      let (late, next, isOver) = state.withLock { state in
        (
          state.schedule.expire(now: now), state.schedule.nextDeadline,
          state.isClosed && state.schedule.isEmpty
        )
      }
      for job in late {
        job.fail(PostgresError(.busy, "all connections to the database are in use"))
      }
      if isOver { return }
      guard let next else {
        alarm.wait()
        continue
      }
      let left = max(.zero, next - now).wholeMilliseconds
      _ = alarm.wait(timeout: .now() + .milliseconds(Int(left)))
    }
  }

  func close() {
    state.withLock { $0.isClosed = true }
    wakeups.signal()
    alarm.signal()
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

  /// Waits for the job; returns `false` if it was cancelled before.
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
  private let settings: PostgresSettings
  private let sharing: PostgresSharing
  private let patience: PostgresPatience
  private let needsWrites: Bool
  private var connection: PostgresConnection?

  init(
    target: ConnectionTarget, settings: PostgresSettings, sharing: PostgresSharing,
    patience: PostgresPatience, needsWrites: Bool
  ) {
    self.target = target
    self.settings = settings
    self.sharing = sharing
    self.patience = patience
    self.needsWrites = needsWrites
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
    let new = try PostgresConnection(
      target: target, settings: settings, sharing: sharing, patience: patience)
    if needsWrites, new.isReadOnly { throw PostgresError.readOnly }
    connection = new
    return new
  }
}

import FerryPlatform
import Foundation
import Synchronization

/// Work for one of the pool's connections.
protocol PoolWork: Sendable {
  /// Runs on a connection's thread, and answers the caller.
  func run(on connection: PoolSlot)
  /// Ends the work with an error if it has not started.
  func fail(_ error: any Error)
}

/// The queue of work for several threads.
///
/// A thread without work looks for more before it sleeps. So it is enough that each new piece of
/// work wakes one thread: the last that fell asleep. Its memory is still in the processor's caches,
/// and that of its PostgreSQL session as well.
final class PoolQueue: Sendable {
  private struct State {
    var schedule: PoolSchedule<any PoolWork>
    var isClosed = false
    /// Sleeping threads.
    var sleepers: [DispatchSemaphore] = []
    var watch = Watch.none

    mutating func removeSleepers() -> [DispatchSemaphore] {
      defer { sleepers = [] }
      return sleepers
    }
  }

  /// The state of the thread that ends work after too long a wait. While work comes and goes, it
  /// looks from time to time, so not each piece of work has to wake it.
  private enum Watch {
    /// Sleeps until it is woken.
    case none
    /// Looks again in time for new work from now on.
    case set(hasNews: Bool)
  }

  private let state: Mutex<State>
  private let alarm = DispatchSemaphore(value: 0)
  private let patience: Duration?
  private let start = ContinuousClock.now

  init(connections: Int, shares: PoolShares) {
    patience = shares.patience
    state = Mutex(State(schedule: PoolSchedule(connections: connections, shares: shares)))
  }

  /// Work in the queue for a connection.
  var waitingCount: Int { state.withLock { $0.schedule.waitingCount } }

  private var now: Duration { .now - start }

  /// Fails the job at once if the queue is closed. If the queue is full, a job of the user with
  /// most jobs fails.
  func push(_ job: any PoolWork, lane: PoolLane, flow: WorkFlow) {
    let (isClosed, refused, sleeper, isWatched) = state.withLock {
      state -> (Bool, (any PoolWork)?, DispatchSemaphore?, Bool) in
      if state.isClosed { return (true, nil, nil, true) }
      let refused = state.schedule.add(job, lane: lane, flow: flow, now: now)
      let isWatched = if case .set = state.watch { true } else { false }
      state.watch = .set(hasNews: true)
      return (false, refused, state.sleepers.popLast(), isWatched)
    }
    if isClosed {
      return job.fail(PostgresError(.poolClosed, "the connection pool is closed"))
    }
    refused?.fail(PostgresError(.busy, "too many jobs wait for the database's connections"))
    sleeper?.signal()
    if !isWatched { alarm.signal() }
  }

  /// Waits for a job; `nil` if the queue is closed and empty.
  ///
  /// - Parameter sleeper: The caller's own semaphore.
  func next(
    _ sleeper: DispatchSemaphore
  ) -> (job: any PoolWork, lane: PoolLane, flow: WorkFlow)? {
    while true {
      let (taken, isOver) = state.withLock { state in
        let taken = state.schedule.dequeue()
        let isOver = state.isClosed && state.schedule.isEmpty
        if taken == nil, !isOver { state.sleepers.append(sleeper) }
        return (taken, isOver)
      }
      if let taken { return taken }
      if isOver { break }
      sleeper.wait()
    }
    wakeAll()
    return nil
  }

  func finish(_ lane: PoolLane, _ flow: WorkFlow) {
    state.withLock { $0.schedule.finish(lane, flow) }
  }

  /// Ends work after too long a wait, until the queue is closed and empty.
  func expire() {
    while true {
      let (late, end, isOver) = state.withLock { state in
        let late = state.schedule.expire(now: now)
        return (late, nextLook(&state), state.isClosed && state.schedule.isEmpty)
      }
      for job in late {
        job.fail(PostgresError(.busy, "all connections to the database are in use"))
      }
      if isOver { return }
      guard let end else {
        alarm.wait()
        continue
      }
      let left = max(.zero, end - now).wholeMilliseconds
      _ = alarm.wait(timeout: .now() + .milliseconds(Int(left)))
    }
  }

  /// Returns the time at which waiting work, or new work from now on, has to end; `nil` if the
  /// thread may sleep until it is woken.
  private func nextLook(_ state: inout State) -> Duration? {
    if let deadline = state.schedule.nextDeadline { return deadline }
    if let patience, case .set(hasNews: true) = state.watch {
      state.watch = .set(hasNews: false)
      return now + patience
    }
    state.watch = .none
    return nil
  }

  func close() {
    state.withLock { $0.isClosed = true }
    wakeAll()
  }

  private func wakeAll() {
    for sleeper in state.withLock({ $0.removeSleepers() }) { sleeper.signal() }
    alarm.signal()
  }
}

/// One call of `PostgresPool.run`: it waits, and then runs or is cancelled, never both.
final class PoolJob<Value: Sendable>: PoolWork {
  private enum Phase {
    case new
    case waiting(@Sendable (Result<Value, any Error>) -> Void)
    case taken
  }

  private let phase = Mutex(Phase.new)
  private let body: @Sendable (PostgresConnection) throws -> Value

  init(_ body: @escaping @Sendable (PostgresConnection) throws -> Value) { self.body = body }

  /// Waits for the job; returns `false` if it was cancelled before.
  func wait(_ answer: @escaping @Sendable (Result<Value, any Error>) -> Void) -> Bool {
    phase.withLock { phase in
      guard case .new = phase else { return false }
      phase = .waiting(answer)
      return true
    }
  }

  func run(on slot: PoolSlot) {
    guard let answer = removeWaiter() else { return }
    answer(Result { try slot.use(body) })
  }

  /// Ends the job with an error if it has not started.
  func fail(_ error: any Error) {
    removeWaiter()?(.failure(error))
  }

  private func removeWaiter() -> (@Sendable (Result<Value, any Error>) -> Void)? {
    phase.withLock { phase in
      defer { phase = .taken }
      return if case .waiting(let answer) = phase { answer } else { nil }
    }
  }
}

/// One thread's connection: opened at the first use, and again when it is broken.
final class PoolSlot {
  private let target: ConnectionTarget
  private let settings: PostgresSettings
  private let options: PostgresPool.Options
  private let patience: PostgresPatience
  private var connection: PostgresConnection?

  init(
    target: ConnectionTarget, settings: PostgresSettings, options: PostgresPool.Options,
    patience: PostgresPatience
  ) {
    self.target = target
    self.settings = settings
    self.options = options
    self.patience = patience
  }

  /// Lends the connection, and leaves it outside any transaction.
  func use<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value {
    let connection = try open()
    defer {
      connection.reset()
      if connection.isStale || connection.hasLargeBuffers { self.connection = nil }
    }
    return try body(connection)
  }

  private func open() throws -> PostgresConnection {
    if let connection, connection.isUsable { return connection }
    connection = nil
    let new = try PostgresConnection(
      target: target, settings: settings, sharing: options.sharing, patience: patience)
    if options.needsWrites, new.isReadOnly { throw PostgresError.readOnly }
    try options.preparation?(new)
    connection = new
    return new
  }
}

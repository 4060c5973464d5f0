/// Tasks that wait for a change of an actor.
struct Waiters: Sendable {
  private var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
  /// The number of waits so far.
  private(set) var count = 0
  /// The number of changes so far.
  private(set) var changes = 0

  /// Returns the number of a new wait.
  fileprivate mutating func next() -> Int {
    count += 1
    return count
  }

  fileprivate mutating func add(_ waiter: CheckedContinuation<Void, Never>, as number: Int) {
    waiting[number] = waiter
  }

  fileprivate mutating func wake(_ number: Int) { waiting.removeValue(forKey: number)?.resume() }

  fileprivate mutating func wake() {
    changes += 1
    let woken = waiting.sorted { $0.key < $1.key }
    waiting = [:]
    for (_, waiter) in woken { waiter.resume() }
  }
}

/// An actor with callers that wait for a change.
protocol Changing: Actor {
  var waiters: Waiters { get set }
  nonisolated var surroundings: MissionSurroundings { get }
}

extension Changing {
  /// Waits until anything has changed, or the task is cancelled.
  func change() async {
    let number = waiters.next()
    await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        if Task.isCancelled { waiter.resume() } else { waiters.add(waiter, as: number) }
      }
    } onCancel: {
      Task(executorPreference: surroundings.executor) { await self.wake(number) }
    }
  }

  /// Waits until anything has changed, even in a cancelled task.
  func nextChange() async {
    let number = waiters.next()
    await withCheckedContinuation { waiters.add($0, as: number) }
  }

  private func wake(_ number: Int) { waiters.wake(number) }

  /// Reports a change to all waiting callers.
  func wake() { waiters.wake() }
}

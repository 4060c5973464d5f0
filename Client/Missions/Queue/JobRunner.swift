/// The jobs of an actor: the queue, and the jobs and effects under way.
struct JobRuns<Kind: JobKind>: Sendable {
  var queue: JobQueue<Kind>
  /// True if events have no effect and no job starts.
  var isStopped = false
  fileprivate(set) var tasks: [Kind.ID: Task<Void, Never>] = [:]
  /// Pending effects of the queue.
  fileprivate var effects: [JobQueue<Kind>.Effect] = []
  /// True while an effect is being executed.
  fileprivate(set) var isCarryingOut = false

  init(_ queue: JobQueue<Kind>) { self.queue = queue }

  /// True if neither a job nor an effect is under way.
  var isIdle: Bool { tasks.isEmpty && !isCarryingOut }
}

/// The driver of a ``JobQueue``: executes effects one after another, with a task for each started
/// job.
protocol JobRunner: Changing {
  associatedtype Kind: JobKind
  var runs: JobRuns<Kind> { get set }

  /// Does the work of a job. Returns the result.
  func work(_ id: Kind.ID) async -> JobQueue<Kind>.Ending

  /// Cleans up after a job, before the queue gets the result.
  func clean(_ id: Kind.ID, after ending: JobQueue<Kind>.Ending) async

  /// Stores the new state of a job, and notifies observers.
  func apply(_ state: JobState, _ reason: Kind.Failure?, to id: Kind.ID) async
}

extension JobRunner {
  var queue: JobQueue<Kind> { runs.queue }

  /// Returns true if a job has a task.
  func isRunning(_ id: Kind.ID) -> Bool { runs.tasks[id] != nil }

  /// Passes an event to the queue, and executes the effects.
  func handle(_ event: JobQueue<Kind>.Event) async {
    if runs.isStopped { return }
    for effect in runs.queue.handle(event) {
      // A stop takes effect at once, whatever else is being written.
      if case .stop(let id) = effect {
        runs.tasks[id]?.cancel()
      } else {
        runs.effects.append(effect)
      }
    }
    guard !runs.isCarryingOut else { return }
    runs.isCarryingOut = true
    while !runs.effects.isEmpty { await carryOut(runs.effects.removeFirst()) }
    runs.isCarryingOut = false
    wake()
  }

  private func carryOut(_ effect: JobQueue<Kind>.Effect) async {
    switch effect {
    case .start(let id):
      if runs.isStopped { return }
      let task = Task(executorPreference: surroundings.executor) { await self.run(id) }
      runs.tasks[id] = task
      // Stopped before the start: there was no task to cancel.
      if queue[id]?.state != .downloading { task.cancel() }
    case .stop: break
    case .changed(let id, let state, let reason): await apply(state, reason, to: id)
    }
  }

  private func run(_ id: Kind.ID) async {
    let ending = await work(id)
    await clean(id, after: ending)
    runs.tasks[id] = nil
    await handle(.ended(id, ending))
    wake()
  }

  /// Stops all jobs, and returns after the end of them.
  func stopJobs() async {
    runs.isStopped = true
    for task in runs.tasks.values { task.cancel() }
    wake()
    // A cancellation of the caller must not end the wait, or it would spin.
    while !runs.isIdle { await nextChange() }
  }
}

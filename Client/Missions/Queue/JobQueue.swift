/// Decides which job runs next: by priority, then in the order of addition, after the jobs it waits
/// for, and within limits. Missions, downloads and items are jobs. Events in, effects out.
///
/// An event costs only as much as the jobs it concerns, so many thousands may wait.
struct JobQueue<Kind: JobKind>: Sendable {
  typealias ID = Kind.ID
  typealias Failure = Kind.Failure

  /// A job in the queue.
  struct Job: Sendable, Equatable {
    var id: ID
    /// Higher priorities come first.
    var priority: Int64 = 0
    /// The number in the order of addition.
    var number: Int64
    /// Jobs to finish first.
    var after: [ID] = []
    /// Jobs of a group share the limits of groups; `nil` for a job alone.
    var group: Int64?
    var state = JobState.ready
    var reason: Failure?
    /// True if a pause after a temporary failure is not over yet.
    var isResting = false
    /// True if the reason is another job that comes first.
    var isBlocked = false
  }

  enum Event: Sendable {
    /// The user adds jobs, or they were in the queue when the last process ended.
    case added([Job])
    /// The user requests jobs, perhaps again. A job under way keeps its place, an ended one begins
    /// again.
    case requested([Job])
    /// The job was complete before, and counts as done until it is requested.
    case alreadyDone(ID)
    case pause(ID)
    case resume(ID)
    case cancel(ID, Failure?)
    case prioritise(ID, Int64)
    /// The pause after a temporary failure is over.
    case rested(ID)
    /// A started job waits for a connection or for another process: it delays no other.
    case stalled(ID, Failure)
    /// A stalled job continues.
    case goesOn(ID)
    /// The job is no longer in the queue, nor is its result here.
    case removed(ID)
    /// The job is no longer in the queue, and counts as done for those waiting for it.
    case finished(ID)
    /// Jobs may start from now on.
    case begin
    /// A started job has ended.
    case ended(ID, Ending)
    /// The number of jobs at once has changed.
    case limit(Int)
  }

  /// The result of a started job.
  enum Ending: Sendable, Equatable {
    case done
    case failed(Failure)
    /// The job is paused with the fetched parts until the user resumes it.
    case paused(Failure?)
    /// Another attempt follows after a pause; meanwhile others run.
    case rests(Failure)
    /// The job was stopped by an effect.
    case stopped
  }

  enum Effect: Sendable, Equatable {
    case start(ID)
    /// The job's work must end now; ``Event/ended(_:_:)`` follows.
    case stop(ID)
    /// The state has changed; the caller stores it and notifies observers.
    case changed(ID, JobState, Failure?)
  }

  /// The limits, at least 1 each.
  private(set) var limits: JobLimits
  /// True if no job may start yet.
  private(set) var isHeld: Bool
  private var jobs: [ID: Job] = [:]
  /// Started jobs, until their end.
  private var running: Set<ID> = []
  /// Running jobs that delay no other.
  private var stalled: Set<ID> = []
  /// Jobs done before they came into the queue.
  private var complete: Set<ID> = []
  /// The jobs waiting for each job.
  private var followers: [ID: Set<ID>] = [:]
  /// Jobs delayed only by the limits.
  private var turns: JobTurns<ID>
  /// Jobs with a possibly changed turn since the last event.
  private var touched: Set<ID> = []
  /// Jobs that waited for another one until the present event.
  private var freed: Set<ID> = []
  /// True if jobs were requested: only they can close a cycle.
  private var mayCycle = false

  init(limits: JobLimits, isHeld: Bool = false) {
    self.limits = limits
    self.limits.atOnce = max(1, limits.atOnce)
    self.isHeld = isHeld
    turns = JobTurns(limits)
  }

  /// The job of this name.
  subscript(id: ID) -> Job? { jobs[id] }

  /// True if no job runs, and none will without another event.
  var isIdle: Bool { running.isEmpty }

  /// True if all jobs are done.
  var isDone: Bool { jobs.values.allSatisfy { $0.state == .done } }

  /// Returns true if a job has started and not ended.
  func isRunning(_ id: ID) -> Bool { running.contains(id) }

  /// Returns the jobs waiting for a job, with the others that each of them waits for.
  func followers(of id: ID) -> [ID: [ID]] {
    var found: [ID: [ID]] = [:]
    for follower in followers[id] ?? [] {
      found[follower] = jobs[follower]?.after.filter { $0 != id }
    }
    return found
  }

  mutating func handle(_ event: Event) -> [Effect] {
    var effects: [Effect] = []
    switch event {
    case .added(let added): for job in added { add(job) }
    case .requested(let requested):
      mayCycle = true
      for job in requested { request(job, &effects) }
    case .alreadyDone(let id):
      complete.insert(id)
      touched.formUnion(followers[id] ?? [])
    case .pause(let id):
      guard let state = jobs[id]?.state, state == .ready || state == .downloading else { break }
      stop(id, as: .paused, nil, &effects)
    case .resume(let id):
      guard let state = jobs[id]?.state, state == .paused || state == .failed else { break }
      set(id, .ready, nil, &effects)
    case .cancel(let id, let reason):
      guard let state = jobs[id]?.state, !state.isFinal else { break }
      stop(id, as: .cancelled, reason, &effects)
    case .prioritise(let id, let priority): change(id) { $0.priority = priority }
    case .rested(let id): change(id) { $0.isResting = false }
    case .stalled(let id, let reason): stall(id, reason, &effects)
    case .goesOn(let id):
      guard stalled.remove(id) != nil, jobs[id]?.state == .downloading else { break }
      set(id, .downloading, nil, &effects)
    case .removed(let id): remove(id, isDone: false)
    case .finished(let id): remove(id, isDone: true)
    case .begin: isHeld = false
    case .ended(let id, let ending): end(id, ending, &effects)
    case .limit(let limit): limits.atOnce = max(1, limit)
    }
    schedule(&effects)
    return effects
  }
}

// Events.
extension JobQueue {
  private mutating func add(_ job: Job) {
    if let former = jobs[job.id] {
      for first in former.after { followers[first]?.remove(job.id) }
    }
    jobs[job.id] = job
    for first in job.after { followers[first, default: []].insert(job.id) }
    touched.insert(job.id)
  }

  private mutating func request(_ job: Job, _ effects: inout [Effect]) {
    if var known = jobs[job.id], !known.state.isFinal {
      (known.priority, known.after) = (job.priority, job.after)
      add(known)
      if known.state == .paused { set(job.id, .ready, nil, &effects) }
      return
    }
    complete.remove(job.id)
    add(job)
    touched.formUnion(followers[job.id] ?? [])
    // A job under way at the end of the last process begins again when its turn comes.
    let isPaused = job.state == .paused
    set(job.id, isPaused ? .paused : .ready, isPaused ? job.reason : nil, &effects)
  }

  private mutating func stop(
    _ id: ID, as state: JobState, _ reason: Failure?, _ effects: inout [Effect]
  ) {
    set(id, state, reason, &effects)
    if running.contains(id) { effects.append(.stop(id)) }
  }

  private mutating func stall(_ id: ID, _ reason: Failure, _ effects: inout [Effect]) {
    guard running.contains(id), jobs[id]?.state == .downloading else { return }
    stalled.insert(id)
    set(id, .downloading, reason, &effects)
  }

  private mutating func remove(_ id: ID, isDone: Bool) {
    complete.remove(id)
    touched.formUnion(followers[id] ?? [])
    guard !running.contains(id), let job = jobs.removeValue(forKey: id) else { return }
    turns.remove(id)
    for first in job.after { followers[first]?.remove(id) }
    guard isDone else { return }
    for (follower, after) in followers(of: id) { jobs[follower]?.after = after }
    followers[id] = nil
  }

  private mutating func end(_ id: ID, _ ending: Ending, _ effects: inout [Effect]) {
    guard running.remove(id) != nil else { return }
    stalled.remove(id)
    touched.insert(id)
    turns.leave(jobs[id]?.group)
    // A pause, a cancellation or a new request meanwhile stays in force, except after completion.
    let isAsItWas = jobs[id]?.state == .downloading
    switch ending {
    case .done: set(id, .done, nil, &effects)
    case .failed(let reason) where isAsItWas: set(id, .failed, reason, &effects)
    case .paused(let reason) where isAsItWas: set(id, .paused, reason, &effects)
    case .rests(let reason) where isAsItWas:
      set(id, .ready, reason, &effects)
      change(id) { $0.isResting = true }
    case .stopped where isAsItWas: set(id, .ready, nil, &effects)
    case .failed, .paused, .rests, .stopped: break
    }
  }
}

// Turns.
extension JobQueue {
  /// Gives each changed job a turn or a reason to wait, and starts those that may.
  private mutating func schedule(_ effects: inout [Effect]) {
    while !touched.isEmpty {
      let changed = touched.compactMap { jobs[$0] }.sorted { $0.turn < $1.turn }
      touched = []
      for job in changed where isWaiting(job) { place(job, &effects) }
    }
    while !isHeld, running.count - stalled.count < limits.atOnce, let id = turns.next() {
      running.insert(id)
      set(id, .downloading, nil, &effects)
      effects.append(.start(id))
    }
    for id in freed.sorted() where jobs[id]?.state == .ready {
      jobs[id]?.reason = nil
      effects.append(.changed(id, .ready, nil))
    }
    freed = []
  }

  private func isWaiting(_ job: Job) -> Bool {
    job.state == .ready && !job.isResting && !running.contains(job.id)
  }

  /// Fails a job that can never start, reports a waiting one, and gives another one a turn.
  private mutating func place(_ job: Job, _ effects: inout [Effect]) {
    turns.remove(job.id)
    guard let (obstacle, cause) = obstacle(of: job) else {
      if job.isBlocked { freed.insert(job.id) }
      jobs[job.id]?.isBlocked = false
      return turns.insert(job.turn)
    }
    let reason = Kind.reason(obstacle, cause)
    guard case .waits = obstacle else { return set(job.id, .failed, reason, &effects) }
    jobs[job.id]?.isBlocked = true
    guard job.reason != reason else { return }
    jobs[job.id]?.reason = reason
    effects.append(.changed(job.id, .ready, reason))
  }

  /// Returns why a job cannot start, with the reason of the job that comes first.
  private func obstacle(of job: Job) -> (JobObstacle<ID>, Failure?)? {
    let open = job.after.filter { !isDone($0) }
    for id in open {
      guard let first = jobs[id] else { return (.lacks(id), nil) }
      if first.state == .failed || first.state == .cancelled {
        return (.failed(id, first.state), first.reason)
      }
    }
    guard let first = open.first else { return nil }
    return mayCycle && isInCycle(job.id) ? (.cycle, nil) : (.waits(for: first), nil)
  }

  private func isDone(_ id: ID) -> Bool { complete.contains(id) || jobs[id]?.state == .done }

  /// Returns true if a job waits for itself. Ended jobs wait for nothing.
  private func isInCycle(_ id: ID) -> Bool {
    Self.leadsBack(to: id) { id in
      guard !complete.contains(id), let job = jobs[id], !job.state.isFinal else { return [] }
      return job.after
    }
  }

  /// Returns true if the jobs before a job, and those before them, include the job.
  fileprivate static func leadsBack(to start: ID, _ after: (ID) -> [ID]) -> Bool {
    var seen: Set<ID> = []
    var open = after(start)
    while let id = open.popLast() {
      if id == start { return true }
      if seen.insert(id).inserted { open += after(id) }
    }
    return false
  }

  /// Changes a job; if it has a turn, it gets the turn again.
  private mutating func change(_ id: ID, _ body: (inout Job) -> Void) {
    guard var job = jobs[id] else { return }
    turns.remove(id)
    body(&job)
    jobs[id] = job
    touched.insert(id)
  }

  private mutating func set(
    _ id: ID, _ state: JobState, _ reason: Failure?, _ effects: inout [Effect]
  ) {
    let former = jobs[id]?.state
    change(id) { job in
      (job.state, job.reason, job.isResting, job.isBlocked) = (state, reason, false, false)
    }
    if state.isFinal || former?.isFinal == true { touched.formUnion(followers[id] ?? []) }
    effects.append(.changed(id, state, reason))
  }
}

/// The reason why jobs cannot be added.
enum JobFault<ID> {
  /// A job has this name already.
  case duplicate
  /// This job comes first, and is unknown.
  case unknown(ID)
  /// The job waits for itself.
  case cycle
}

// Checks before an addition.
extension JobQueue {
  /// Returns the first of new jobs that cannot be added; `nil` if all can.
  func fault(adding new: [Job]) -> (ID, JobFault<ID>)? {
    var added: [ID: [ID]] = [:]
    for job in new {
      guard jobs[job.id] == nil, added.updateValue(job.after, forKey: job.id) == nil else {
        return (job.id, .duplicate)
      }
    }
    let after = { (id: ID) in added[id] ?? jobs[id]?.after ?? [] }
    for job in new {
      for first in job.after where added[first] == nil && jobs[first] == nil {
        return (job.id, .unknown(first))
      }
      if Self.leadsBack(to: job.id, after) { return (job.id, .cycle) }
    }
    return nil
  }
}

extension JobQueue.Job {
  fileprivate var turn: JobTurns<Kind.ID>.Turn {
    JobTurns<Kind.ID>.Turn(
      priority: priority, number: number, id: id, group: group)
  }
}

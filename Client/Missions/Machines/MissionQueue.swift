import FerryProtocol

/// Decides which mission is fetched next: by priority, then in the order of requests, and after the
/// missions it waits for (SPEC.md §21). Events in, effects out.
struct MissionQueue: Sendable {
  /// A mission in the queue.
  struct Entry: Sendable, Equatable {
    var id: MissionID
    var priority: Int64
    /// The number in the order of requests.
    var asked: Int64
    /// Missions to complete first.
    var after: [MissionID]
    var state: MissionState = .ready
    var reason: MissionError?
  }

  enum Event: Sendable, Equatable {
    /// The user requests the missions, or they were in the queue when the last process ended.
    case asked([Entry])
    /// The mission is on this device already.
    case alreadyComplete(MissionID)
    case pause(MissionID)
    case resume(MissionID)
    case cancel(MissionID)
    /// A started mission waits for a connection or for another process.
    case stalled(MissionID, MissionError)
    /// A stalled mission continues.
    case goesOn(MissionID)
    /// No part of the mission is here any more.
    case removed(MissionID)
    /// A started mission has ended.
    case ended(MissionID, Ending)
  }

  /// The result of a started mission.
  enum Ending: Sendable, Equatable {
    case done
    case failed(MissionError)
    /// The mission is paused with the fetched parts until the user resumes it.
    case rests(MissionError)
    /// The mission was stopped by an effect.
    case stopped
  }

  enum Effect: Sendable, Equatable {
    case start(MissionID)
    /// The mission's work must end now; ``Event/ended(_:_:)`` follows.
    case stop(MissionID)
    /// The state has changed; the caller stores it and notifies observers.
    case changed(MissionID, MissionState, MissionError?)
  }

  /// The most missions fetched at once.
  let limit: Int
  private var entries: [MissionID: Entry] = [:]
  /// Started missions, until their end.
  private var running: Set<MissionID> = []
  /// Running missions waiting for a connection: they delay no other.
  private var stalled: Set<MissionID> = []
  private var there: Set<MissionID> = []

  init(limit: Int = 1) {
    precondition(limit > 0, "at least one mission is fetched at a time")
    self.limit = limit
  }

  /// The entry of a mission.
  subscript(id: MissionID) -> Entry? { entries[id] }

  /// True if no mission runs, and none will without another event.
  var isIdle: Bool { running.isEmpty }

  mutating func handle(_ event: Event) -> [Effect] {
    var effects: [Effect] = []
    switch event {
    case .asked(let entries): for entry in entries { ask(entry, &effects) }
    case .alreadyComplete(let id): there.insert(id)
    case .pause(let id): pause(id, &effects)
    case .resume(let id): resume(id, &effects)
    case .cancel(let id): cancel(id, &effects)
    case .stalled(let id, let reason):
      guard running.contains(id), entries[id]?.state == .downloading else { break }
      stalled.insert(id)
      set(id, .downloading, reason, &effects)
    case .goesOn(let id):
      guard stalled.remove(id) != nil, entries[id]?.state == .downloading else { break }
      set(id, .downloading, nil, &effects)
    case .removed(let id):
      there.remove(id)
      if !running.contains(id) { entries[id] = nil }
    case .ended(let id, let ending): end(id, ending, &effects)
    }
    schedule(&effects)
    return effects
  }

  // MARK: Events

  private mutating func ask(_ entry: Entry, _ effects: inout [Effect]) {
    let id = entry.id
    if let known = entries[id], !known.state.isFinal {
      // A repeated request, perhaps of a later version: the place in the order stays.
      entries[id]?.priority = entry.priority
      entries[id]?.after = entry.after
      if known.state == .paused { resume(id, &effects) }
      return
    }
    entries[id] = entry
    there.remove(id)
    // A mission under way at the end of the last process begins again when its turn comes.
    let isResting = entry.state == .paused
    set(id, isResting ? .paused : .ready, isResting ? entry.reason : nil, &effects)
  }

  private mutating func pause(_ id: MissionID, _ effects: inout [Effect]) {
    guard let state = entries[id]?.state, state == .ready || state == .downloading else { return }
    set(id, .paused, nil, &effects)
    if running.contains(id) { effects.append(.stop(id)) }
  }

  private mutating func resume(_ id: MissionID, _ effects: inout [Effect]) {
    guard entries[id]?.state == .paused else { return }
    set(id, .ready, nil, &effects)
  }

  private mutating func cancel(_ id: MissionID, _ effects: inout [Effect]) {
    guard let state = entries[id]?.state, !state.isFinal else { return }
    set(id, .cancelled, MissionError(.cancelled, "it was cancelled"), &effects)
    if running.contains(id) { effects.append(.stop(id)) }
  }

  private mutating func end(_ id: MissionID, _ ending: Ending, _ effects: inout [Effect]) {
    guard running.remove(id) != nil else { return }
    stalled.remove(id)
    // A pause, a cancellation or a new request meanwhile stays in force, except after completion.
    let isAsItWas = entries[id]?.state == .downloading
    switch ending {
    case .done:
      there.insert(id)
      set(id, .done, nil, &effects)
    case .failed(let reason) where isAsItWas: set(id, .failed, reason, &effects)
    case .rests(let reason) where isAsItWas: set(id, .paused, reason, &effects)
    case .stopped where isAsItWas: set(id, .paused, nil, &effects)
    case .failed, .rests, .stopped: break
    }
  }

  // MARK: Consequences

  /// Fails missions that can never start, reports waiting ones, and starts those that may.
  private mutating func schedule(_ effects: inout [Effect]) {
    failUnreachable(&effects)
    for entry in inOrder where entry.state == .ready && !running.contains(entry.id) {
      if let first = entry.after.first(where: { !isDone($0) }) {
        let reason = MissionError(.waiting, "it waits for mission \(first)")
        if entry.reason != reason { set(entry.id, .ready, reason, &effects) }
      } else if running.count - stalled.count < limit {
        running.insert(entry.id)
        set(entry.id, .downloading, nil, &effects)
        effects.append(.start(entry.id))
      } else if entry.reason != nil {
        set(entry.id, .ready, nil, &effects)
      }
    }
  }

  /// Fails missions that wait for a failed or absent mission, or for each other. Missions that wait
  /// for a failed one fail as well.
  private mutating func failUnreachable(_ effects: inout [Effect]) {
    var isSettled = false
    while !isSettled {
      isSettled = true
      for entry in inOrder where entry.state == .ready && !running.contains(entry.id) {
        guard let reason = obstacle(of: entry) else { continue }
        set(entry.id, .failed, reason, &effects)
        isSettled = false
      }
    }
  }

  private func obstacle(of entry: Entry) -> MissionError? {
    for id in entry.after where !isDone(id) {
      guard let first = entries[id] else {
        return MissionError(
          .dependency, "its predecessor, mission \(id), is neither stored nor requested")
      }
      if first.state == .failed || first.state == .cancelled {
        let why = first.reason.map { ": \($0)" } ?? ""
        let what = first.state == .failed ? "failed" : "was cancelled"
        return MissionError(.dependency, "its predecessor, mission \(id), \(what)\(why)")
      }
    }
    guard isInCircle(entry.id) else { return nil }
    return MissionError(.dependency, "it waits for itself: the missions form a cycle")
  }

  /// Returns true if a mission's dependencies lead back to it.
  private func isInCircle(_ start: MissionID) -> Bool {
    var seen: Set<MissionID> = []
    var open = entries[start]?.after ?? []
    while let id = open.popLast() {
      if id == start { return true }
      guard !isDone(id), seen.insert(id).inserted else { continue }
      open += entries[id]?.after ?? []
    }
    return false
  }

  private func isDone(_ id: MissionID) -> Bool {
    if let state = entries[id]?.state { return state == .done || there.contains(id) }
    return there.contains(id)
  }

  private var inOrder: [Entry] {
    entries.values.sorted {
      ($1.priority, $0.asked, $0.id) < ($0.priority, $1.asked, $1.id)
    }
  }

  private mutating func set(
    _ id: MissionID, _ state: MissionState, _ reason: MissionError?, _ effects: inout [Effect]
  ) {
    entries[id]?.state = state
    entries[id]?.reason = reason
    effects.append(.changed(id, state, reason))
  }
}

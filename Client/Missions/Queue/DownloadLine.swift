/// Decides which download is fetched next: by priority, then in the order of addition, and after
/// the downloads it waits for. Events in, effects out.
///
/// An event costs only as much as the downloads it concerns, so thousands may wait.
struct DownloadLine: Sendable {
  /// A download in the line.
  struct Entry: Sendable, Equatable {
    var id: DownloadID
    /// Higher priorities come first.
    var priority: Int
    /// The number in the order of addition.
    var number: Int64
    /// Downloads to finish first.
    var after: [DownloadID] = []
    var state = DownloadState.ready
    var reason: DownloadError?
    /// True if a pause after a temporary failure is not over yet.
    var isResting = false
  }

  enum Event: Sendable, Equatable {
    /// The user adds downloads, or they were in the queue when the last process ended.
    case added([Entry])
    case pause(DownloadID)
    case resume(DownloadID)
    case cancel(DownloadID)
    case prioritise(DownloadID, Int)
    /// The pause after a temporary failure is over.
    case rested(DownloadID)
    /// The download is no longer in the queue. A finished one still counts as done.
    case removed(DownloadID)
    /// Downloads may start from now on.
    case begin
    /// A started download has ended.
    case ended(DownloadID, Ending)
    /// The number of downloads at once has changed.
    case limit(Int)
  }

  /// The result of a started download.
  enum Ending: Sendable, Equatable {
    case done
    case failed(DownloadError)
    /// The download is paused with the fetched parts until the user resumes it.
    case paused(DownloadError)
    /// Another attempt follows after a pause; meanwhile others run.
    case rests(DownloadError)
    /// The download was stopped by an effect.
    case stopped
  }

  enum Effect: Sendable, Equatable {
    case start(DownloadID)
    /// The download's work must end now; ``Event/ended(_:_:)`` follows.
    case stop(DownloadID)
    /// The state has changed; the caller stores it and notifies observers.
    case changed(DownloadID, DownloadState, DownloadError?)
  }

  /// The most downloads fetched at once.
  private(set) var limit: Int
  /// True if no download may start yet.
  private(set) var isHeld: Bool
  private var entries: [DownloadID: Entry] = [:]
  /// Started downloads, until their end.
  private var running: Set<DownloadID> = []
  /// The downloads waiting for each download.
  private var followers: [DownloadID: Set<DownloadID>] = [:]
  /// Downloads delayed only by the limit.
  private var startable = TurnList()
  /// Downloads with a possibly changed turn since the last event.
  private var touched: Set<DownloadID> = []
  /// Downloads that waited for another one until the present event.
  private var freed: Set<DownloadID> = []

  init(limit: Int, isHeld: Bool = false) {
    self.limit = max(1, limit)
    self.isHeld = isHeld
  }

  /// The entry of a download.
  subscript(id: DownloadID) -> Entry? { entries[id] }

  /// Returns true if a download has started and not ended.
  func isRunning(_ id: DownloadID) -> Bool { running.contains(id) }

  /// Returns the downloads waiting for a download, with the others that each of them waits for.
  func followers(of id: DownloadID) -> [DownloadID: [DownloadID]] {
    var found: [DownloadID: [DownloadID]] = [:]
    for follower in followers[id] ?? [] {
      found[follower] = entries[follower]?.after.filter { $0 != id }
    }
    return found
  }

  /// Returns why downloads cannot be added: one waits for an unknown one, or for itself.
  func fault(adding new: [Entry]) -> DownloadError? {
    var after = entries.mapValues(\.after)
    for entry in new {
      guard after.updateValue(entry.after, forKey: entry.id) == nil else {
        return DownloadError(.dependency, "there is a download \(entry.id) already")
      }
    }
    for entry in new {
      for first in entry.after where after[first] == nil {
        return DownloadError(
          .dependency, "download \(entry.id) waits for \(first), which is not in the queue")
      }
      if Self.isInCircle(entry.id, after) {
        return DownloadError(
          .dependency, "download \(entry.id) waits for itself: the downloads form a cycle")
      }
    }
    return nil
  }

  private static func isInCircle(
    _ start: DownloadID, _ after: [DownloadID: [DownloadID]]
  ) -> Bool {
    var seen: Set<DownloadID> = []
    var open = after[start] ?? []
    while let id = open.popLast() {
      if id == start { return true }
      if seen.insert(id).inserted { open += after[id] ?? [] }
    }
    return false
  }

  mutating func handle(_ event: Event) -> [Effect] {
    var effects: [Effect] = []
    switch event {
    case .added(let added): for entry in added { add(entry) }
    case .pause(let id):
      guard let state = entries[id]?.state, state == .ready || state == .downloading else { break }
      set(id, .paused, nil, &effects)
      if running.contains(id) { effects.append(.stop(id)) }
    case .resume(let id):
      guard let state = entries[id]?.state, state == .paused || state == .failed else { break }
      set(id, .ready, nil, &effects)
    case .cancel(let id):
      guard let state = entries[id]?.state, !state.isFinal else { break }
      set(id, .cancelled, nil, &effects)
      if running.contains(id) { effects.append(.stop(id)) }
    case .prioritise(let id, let priority):
      change(id) { $0.priority = priority }
    case .rested(let id):
      change(id) { $0.isResting = false }
    case .removed(let id): if !running.contains(id) { remove(id) }
    case .ended(let id, let ending): end(id, ending, &effects)
    case .limit(let limit): self.limit = max(1, limit)
    case .begin: isHeld = false
    }
    schedule(&effects)
    return effects
  }

  private mutating func add(_ entry: Entry) {
    entries[entry.id] = entry
    for first in entry.after { followers[first, default: []].insert(entry.id) }
    touched.insert(entry.id)
  }

  private mutating func remove(_ id: DownloadID) {
    change(id) { _ in }
    guard let entry = entries.removeValue(forKey: id) else { return }
    for first in entry.after { followers[first]?.remove(id) }
    touched.formUnion(followers[id] ?? [])
    guard entry.state == .done else { return }
    for (follower, after) in self.followers(of: id) { entries[follower]?.after = after }
    followers[id] = nil
  }

  private mutating func end(_ id: DownloadID, _ ending: Ending, _ effects: inout [Effect]) {
    guard running.remove(id) != nil else { return }
    touched.insert(id)
    // A pause or a cancellation meanwhile stays in force, except after completion.
    let isAsItWas = entries[id]?.state == .downloading
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

  // MARK: Turns

  /// Gives each changed download a turn or a reason to wait, and starts those that may.
  private mutating func schedule(_ effects: inout [Effect]) {
    while !touched.isEmpty {
      let entries = touched.compactMap { self.entries[$0] }.sorted { $0.turn < $1.turn }
      touched = []
      for entry in entries where isWaiting(entry) { place(entry, &effects) }
    }
    while !isHeld, running.count < limit, let id = startable.next() {
      running.insert(id)
      set(id, .downloading, nil, &effects)
      effects.append(.start(id))
    }
    for id in freed.sorted() where entries[id]?.state == .ready {
      entries[id]?.reason = nil
      effects.append(.changed(id, .ready, nil))
    }
    freed = []
  }

  /// Fails a download that can never start, reports a waiting one, and gives another one a turn.
  private mutating func place(_ entry: Entry, _ effects: inout [Effect]) {
    if let reason = obstacle(of: entry) { return set(entry.id, .failed, reason, &effects) }
    startable.remove(entry.turn)
    guard let first = entry.after.first(where: { entries[$0]?.state != .done }) else {
      if entry.reason?.kind == .waiting { freed.insert(entry.id) }
      return startable.insert(entry.turn)
    }
    let reason = DownloadError(.waiting, "it waits for download \(first)")
    guard entry.reason != reason else { return }
    entries[entry.id]?.reason = reason
    effects.append(.changed(entry.id, .ready, reason))
  }

  private func isWaiting(_ entry: Entry) -> Bool {
    entry.state == .ready && !entry.isResting && !running.contains(entry.id)
  }

  /// Returns why a download can never start: one that comes first failed, was cancelled, or was
  /// removed before it was done.
  private func obstacle(of entry: Entry) -> DownloadError? {
    for id in entry.after {
      guard let first = entries[id] else {
        return DownloadError(
          .dependency, "download \(id), which comes first, was removed before it was done")
      }
      if first.state == .failed || first.state == .cancelled {
        let what = first.state == .failed ? "failed" : "was cancelled"
        let why = first.reason.map { ": \($0.message)" } ?? ""
        return DownloadError(.dependency, "download \(id), which comes first, \(what)\(why)")
      }
    }
    return nil
  }

  /// Changes a download; if it has a turn, it gets the turn again.
  private mutating func change(_ id: DownloadID, _ body: (inout Entry) -> Void) {
    guard var entry = entries[id] else { return }
    startable.remove(entry.turn)
    body(&entry)
    entries[id] = entry
    touched.insert(id)
  }

  private mutating func set(
    _ id: DownloadID, _ state: DownloadState, _ reason: DownloadError?, _ effects: inout [Effect]
  ) {
    let former = entries[id]?.state
    change(id) { ($0.state, $0.reason, $0.isResting) = (state, reason, false) }
    if state.isFinal || former?.isFinal == true { touched.formUnion(followers[id] ?? []) }
    effects.append(.changed(id, state, reason))
  }
}

extension DownloadLine.Entry {
  fileprivate var turn: TurnList.Turn {
    TurnList.Turn(priority: priority, number: number, id: id)
  }
}

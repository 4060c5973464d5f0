/// Jobs ready to start, in the order of their turns, within the limits of groups.
struct JobTurns<ID: Hashable & Comparable & Sendable>: Sendable {
  /// The place of a job in the order: higher priorities first, then earlier additions.
  struct Turn: Sendable, Comparable {
    var priority: Int64
    /// The number in the order of addition.
    var number: Int64
    var id: ID
    var group: Int64?

    static func < (left: Self, right: Self) -> Bool {
      (right.priority, left.number, left.id) < (left.priority, right.number, right.id)
    }
  }

  /// A group with running jobs, or with turns that wait for them.
  private struct Group {
    var running = 0
    /// Turns that the limits of groups delay.
    var delayed = Heap<Turn>()
  }

  private let limits: JobLimits
  /// The turn of each job in the list. Other turns in heaps are obsolete.
  private var waiting: [ID: Turn] = [:]
  private var heap = Heap<Turn>()
  private var groups: [Int64: Group] = [:]
  /// The number of groups with running jobs.
  private var activeGroups = 0

  init(_ limits: JobLimits) { self.limits = limits }

  /// Adds a turn, in place of the job's former one.
  mutating func insert(_ turn: Turn) {
    waiting[turn.id] = turn
    heap.insert(turn)
  }

  /// Removes the turn of a job, if there is one.
  mutating func remove(_ id: ID) { waiting[id] = nil }

  /// Removes and returns the next job: it is running until ``leave(_:)``.
  mutating func next() -> ID? {
    while let turn = heap.removeFirst() {
      guard waiting[turn.id] == turn else {
        release(turn.group)
        continue
      }
      if let group = turn.group {
        guard mayRun(group) else {
          groups[group, default: Group()].delayed.insert(turn)
          continue
        }
        enter(group)
      }
      waiting[turn.id] = nil
      return turn.id
    }
    return nil
  }

  /// Records the end of a running job of a group.
  mutating func leave(_ group: Int64?) {
    guard let group, let running = groups[group]?.running, running > 0 else { return }
    groups[group]?.running = running - 1
    if running == 1 { activeGroups -= 1 }
    release(group)
    if groups[group].map({ $0.running == 0 && $0.delayed.isEmpty }) == true {
      groups[group] = nil
    }
  }

  // MARK: Groups

  private func mayRun(_ group: Int64) -> Bool {
    let running = groups[group]?.running ?? 0
    return running < max(1, limits.atOnceInGroup)
      && (running > 0 || activeGroups < max(1, limits.groupsAtOnce))
  }

  private mutating func enter(_ group: Int64) {
    if groups[group, default: Group()].running == 0 { activeGroups += 1 }
    groups[group, default: Group()].running += 1
    release(group)
  }

  /// Returns the next delayed turn of a group to the others, if the group may run; and that of
  /// another group, if one more may.
  private mutating func release(_ group: Int64?) {
    if let group, mayRun(group), let turn = firstDelayed(of: group) { undelay(turn, of: group) }
    admitGroup()
  }

  /// Returns the best delayed turn of all groups to the others, if one more group may run.
  private mutating func admitGroup() {
    guard limits.groupsAtOnce < .max, activeGroups < max(1, limits.groupsAtOnce) else { return }
    var best: (turn: Turn, group: Int64)?
    for group in groups.keys {
      guard groups[group]?.running == 0, let turn = firstDelayed(of: group) else { continue }
      if best.map({ turn < $0.turn }) ?? true { best = (turn, group) }
    }
    if let best { undelay(best.turn, of: best.group) }
  }

  /// Returns the next delayed turn of a group, after the removal of obsolete ones.
  private mutating func firstDelayed(of group: Int64) -> Turn? {
    while let turn = groups[group]?.delayed.first {
      if waiting[turn.id] == turn { return turn }
      _ = groups[group]?.delayed.removeFirst()
    }
    return nil
  }

  private mutating func undelay(_ turn: Turn, of group: Int64) {
    _ = groups[group]?.delayed.removeFirst()
    heap.insert(turn)
  }
}

/// Elements with the least one first.
struct Heap<Element: Comparable & Sendable>: Sendable {
  /// No element is less than the one at half of its place.
  private var elements: [Element] = []

  var isEmpty: Bool { elements.isEmpty }
  var first: Element? { elements.first }

  mutating func insert(_ element: Element) {
    elements.append(element)
    var place = elements.count - 1
    while place > 0, elements[place] < elements[(place - 1) / 2] {
      elements.swapAt(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
  }

  mutating func removeFirst() -> Element? {
    guard let last = elements.popLast() else { return nil }
    guard let first = elements.first else { return last }
    elements[0] = last
    var place = 0
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2] where child < elements.count {
        if elements[child] < elements[least] { least = child }
      }
      if least == place { return first }
      elements.swapAt(place, least)
      place = least
    }
  }
}

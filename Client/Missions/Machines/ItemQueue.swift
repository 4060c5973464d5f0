import FerryProtocol

/// Decides which items of one mission are fetched next: in the manifest's order, after those that
/// they wait for, so many side by side (seed rows S4.3 and S5.2).
///
/// Items with the same content are one piece of work, which begins when the first of them may.
struct ItemQueue: Sendable {
  /// Items that are fetched at once.
  let limit: Int
  /// Which content an item has; items with the same content, for each.
  private let contents: [Int]
  private let sharers: [[Int]]
  private let followers: [[Int]]
  /// Items that an item still waits for.
  private var waiting: [Int]
  /// Items that wait for nothing any more, the next one last.
  private var ready: [Int]
  private var isStarted: [Bool]
  private var isFinished: [Bool]
  private var running = 0
  /// Items that are there.
  private(set) var doneCount = 0

  /// The items are those of a manifest that was checked: none waits for itself in the end.
  init(_ items: [MissionItem], limit: Int = 4) {
    precondition(limit > 0, "at least one item is fetched at a time")
    self.limit = limit
    var numbers: [ContentHash: Int] = [:]
    var places: [String: Int] = [:]
    var (contents, sharers) = ([Int](), [[Int]]())
    for (place, item) in items.enumerated() {
      let number = numbers[item.hash] ?? sharers.count
      numbers[item.hash] = number
      if number == sharers.count { sharers.append([]) }
      sharers[number].append(place)
      contents.append(number)
      places[item.path] = place
    }
    var waiting = [Int](repeating: 0, count: items.count)
    var followers = [[Int]](repeating: [], count: items.count)
    for (place, item) in items.enumerated() {
      for first in Set(item.after.compactMap { places[$0] }).sorted() {
        followers[first].append(place)
        waiting[place] += 1
      }
    }
    ready = items.indices.filter { waiting[$0] == 0 }.reversed()
    isStarted = [Bool](repeating: false, count: sharers.count)
    isFinished = isStarted
    self.contents = contents
    self.sharers = sharers
    self.followers = followers
    self.waiting = waiting
  }

  /// Whether all items are there.
  var isDone: Bool { doneCount == contents.count }

  /// Items to start now.
  mutating func start() -> [Int] {
    var started: [Int] = []
    while running < limit, let place = ready.popLast() {
      if isStarted[contents[place]] { continue }
      isStarted[contents[place]] = true
      started.append(place)
      running += 1
    }
    return started
  }

  /// The content of a started item is there. Answers with all items that have it.
  mutating func finish(_ place: Int) -> [Int] {
    let content = contents[place]
    precondition(isStarted[content] && !isFinished[content], "the item was not under way")
    isFinished[content] = true
    running -= 1
    doneCount += sharers[content].count
    for sharer in sharers[content] {
      for follower in followers[sharer] {
        waiting[follower] -= 1
        if waiting[follower] == 0 { insertReady(follower) }
      }
    }
    return sharers[content]
  }

  private mutating func insertReady(_ place: Int) {
    var (low, high) = (0, ready.count)
    while low < high {
      let middle = (low + high) / 2
      if ready[middle] > place { low = middle + 1 } else { high = middle }
    }
    ready.insert(place, at: low)
  }
}

import FerryProtocol

/// Decides which items of one mission are fetched next (SPEC.md §21): in the manifest's order, each
/// item after those it waits for. A number of items is fetched at once.
///
/// Items with the same content are one piece of work; it begins when the first of them may.
struct ItemQueue: Sendable {
  /// The most items fetched at once.
  let limit: Int
  /// The content of each item, and the items of each content.
  private let contents: [Int]
  private let sharers: [[Int]]
  private let followers: [[Int]]
  /// The number of items each item still waits for.
  private var waiting: [Int]
  /// Items ready to start, the next one last.
  private var ready: [Int]
  private var isStarted: [Bool]
  private var isFinished: [Bool]
  private var running = 0
  /// The number of complete items.
  private(set) var doneCount = 0

  /// Creates a queue of a checked manifest's items: none of them waits for itself.
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

  /// True if all items are complete.
  var isDone: Bool { doneCount == contents.count }

  /// Returns the items to start now.
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

  /// Records that the content of a started item is complete. Returns all items with this content.
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

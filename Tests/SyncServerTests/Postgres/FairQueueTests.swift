import FerryPlatform
import FerryTestSupport
import Testing

/// The turns of flows, as a table.
@Suite("A fair queue", .hangLimit)
struct FairQueueTests {
  typealias Queue = FairQueue<String>

  /// Returns a queue of work, each named by user, space and number: `a.x1`.
  static func queue(_ works: [String]) -> Queue {
    var queue = Queue()
    for work in works { add(work, to: &queue) }
    return queue
  }

  static func add(_ work: String, to queue: inout Queue) {
    let parts = work.split(separator: ".").map(String.init)
    queue.add(work, to: [parts[0], String(parts[1].prefix(1))])
  }

  static func drained(_ queue: Queue) -> [String] {
    var queue = queue
    var order: [String] = []
    while let work = queue.removeNext() { order.append(work) }
    return order
  }

  @Test(
    "users take turns, then the spaces of a user, and the work of a space goes in its order",
    arguments: [
      (["a.x1", "a.x2", "a.x3"], ["a.x1", "a.x2", "a.x3"]),
      (["a.x1", "a.x2", "b.x1"], ["a.x1", "b.x1", "a.x2"]),
      (["a.x1", "a.x2", "a.y1", "b.x1"], ["a.x1", "b.x1", "a.y1", "a.x2"]),
      (["a.x1", "b.y1", "b.z1", "a.x2"], ["a.x1", "b.y1", "a.x2", "b.z1"]),
      ([], []),
    ])
  func turns(_ works: [String], _ order: [String]) {
    let queue = Self.queue(works)
    #expect(queue.count == works.count && queue.isEmpty == works.isEmpty)
    #expect(queue.next() == order.first)
    #expect(Self.drained(queue) == order)
  }

  @Test("one piece of work behind four hundred of another user is second")
  func behindMany() {
    var queue = Self.queue((0..<400).map { "a.x\($0)" })
    _ = queue.removeNext()
    Self.add("b.x0", to: &queue)
    #expect(queue.removeNext() == "a.x1")
    #expect(queue.removeNext() == "b.x0")
  }

  @Test("users that may not go are passed over, and keep their turns")
  func passedOver() {
    var queue = Self.queue(["a.x1", "a.x2", "b.x1", "c.x1"])
    #expect(queue.next { $0 != "a" } == "b.x1")
    #expect(queue.removeNext { $0 != "a" } == "b.x1")
    #expect(queue.removeNext { $0 == "d" } == nil)
    #expect(Self.drained(queue) == ["a.x1", "c.x1", "a.x2"])
  }

  @Test("the newest work of the space with most, of the user with most, gives way")
  func heaviest() {
    var queue = Self.queue(["a.x1", "a.y1", "a.y2", "b.x1", "b.x2"])
    #expect(queue.removeHeaviest() == "a.y2")
    #expect(queue.removeHeaviest() == "b.x2", "of equal users, that of the later turn")
    #expect(queue.count(of: "a") == 2 && queue.count(of: "b") == 1)
    #expect(Self.drained(queue) == ["a.x1", "b.x1", "a.y1"])
    var single = Self.queue(["a.x1"])
    #expect(single.removeHeaviest() == "a.x1")
    #expect(single.removeHeaviest() == nil && single.isEmpty)
  }

  @Test("heads are removed flow by flow, up to the first that stays")
  func heads() {
    var queue = Self.queue(["a.x1", "a.x9", "a.x2", "b.x1", "b.y9"])
    #expect(queue.heads == ["a.x1", "b.x1", "b.y9"])
    #expect(queue.removeHeads { !$0.hasSuffix("9") } == ["a.x1", "b.x1"])
    #expect(queue.count == 3)
    #expect(Self.drained(queue) == ["a.x9", "b.y9", "a.x2"])
  }

  @Test("any order of calls loses no work and gives none twice")
  func nothingLost() {
    var random = SeededGenerator(seed: 7)
    for _ in 0..<200 {
      var queue = Queue()
      var (added, removed): ([String], [String]) = ([], [])
      for number in 0..<100 {
        switch random.below(5) {
        case 0...2:
          let work = "\(random.below(4)).\(random.below(3))\(number)"
          Self.add(work, to: &queue)
          added.append(work)
        case 3: if let work = queue.removeNext() { removed.append(work) }
        default: if let work = queue.removeHeaviest() { removed.append(work) }
        }
        #expect(queue.count == added.count - removed.count)
      }
      #expect((removed + Self.drained(queue)).sorted() == added.sorted())
    }
  }
}

import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("Item queue", .hangLimit)
struct ItemQueueTests {
  private func item(_ path: String, _ content: String? = nil, after: [String] = []) -> MissionItem {
    let bytes = Array((content ?? path).utf8)
    return MissionItem(path: path, size: Int64(bytes.count), hash: hash(bytes), after: after)
  }

  @Test("items start in the manifest's order, up to the limit of parallel ones")
  func bounded() {
    var queue = ItemQueue((0..<6).map { item("i\($0)") }, limit: 4)
    #expect(queue.start() == [0, 1, 2, 3])
    #expect(queue.start().isEmpty)
    #expect(queue.finish(2) == [2])
    #expect(queue.start() == [4])
    for place in [0, 1, 3, 4] { _ = queue.finish(place) }
    #expect(queue.start() == [5])
    #expect(!queue.isDone)
    _ = queue.finish(5)
    #expect(queue.isDone)
  }

  @Test("an item starts after the items that it waits for")
  func dependencies() {
    var queue = ItemQueue([
      item("page", after: ["style", "font"]), item("style", after: ["font"]), item("font"),
    ])
    #expect(queue.start() == [2])
    _ = queue.finish(2)
    #expect(queue.start() == [1])
    _ = queue.finish(1)
    #expect(queue.start() == [0])
  }

  @Test("equal content is fetched once, as soon as one of its items can start")
  func shared() {
    // By content, a waits for b and b for a; by item there is a way.
    var queue = ItemQueue([
      item("a", "X", after: ["b"]), item("b", "Y", after: ["c"]), item("c", "X"),
    ])
    #expect(queue.start() == [2])
    #expect(queue.finish(2) == [0, 2])
    #expect(queue.doneCount == 2)
    #expect(queue.start() == [1])
    #expect(queue.finish(1) == [1])
    #expect(queue.isDone && queue.start().isEmpty)
  }

  @Test("a queue of a hundred thousand items takes linear time")
  func many() {
    let items = (0..<100_000).map { item("i\($0)", after: $0 % 2 == 1 ? ["i\($0 - 1)"] : []) }
    var queue = ItemQueue(items)
    var running = queue.start()
    while let place = running.popLast() {
      _ = queue.finish(place)
      running += queue.start()
    }
    #expect(queue.isDone)
  }
}

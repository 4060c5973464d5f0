import FerryTestSupport
import Testing

@testable import FerryCaching

@Suite("The memory level of the cache", .hangLimit)
struct MemoryLevelTests {
  private func body(_ count: Int) -> [UInt8] { [UInt8](repeating: 7, count: count) }

  @Test("the level drops the least recently used body if there is no more room")
  func leastRecentlyUsed() {
    var level = MemoryLevel(bytesMax: 100, ageMax: 1000)
    for id in 1...4 { level.store(body(25), of: Int64(id), now: 0) }
    #expect(level.bytes == 100 && level.count == 4)
    #expect(level.body(of: 1, now: 0) != nil)
    level.store(body(20), of: 5, now: 0)
    #expect(level.body(of: 2, now: 0) == nil)
    for id in [1, 3, 4, 5] { #expect(level.body(of: Int64(id), now: 0) != nil) }
    #expect(level.bytes == 95)
  }

  @Test("the level replaces a body, and keeps none of more than a quarter of the room")
  func sizes() {
    var level = MemoryLevel(bytesMax: 100, ageMax: 1000)
    level.store(body(20), of: 1, now: 0)
    level.store(body(10), of: 1, now: 0)
    #expect(level.bytes == 10)
    level.store(body(26), of: 1, now: 0)
    #expect(level.bytes == 0 && level.body(of: 1, now: 0) == nil)
  }

  @Test("the level drops bodies that are too old, or seem to come from the future")
  func ages() {
    var level = MemoryLevel(bytesMax: 100, ageMax: 1000)
    level.store(body(1), of: 1, now: 5000)
    #expect(level.body(of: 1, now: 6000) != nil)
    #expect(level.body(of: 1, now: 6001) == nil)
    level.store(body(1), of: 2, now: 5000)
    #expect(level.body(of: 2, now: 4999) == nil)
    level.store(body(1), of: 3, now: 5000)
    level.store(body(1), of: 4, now: 9000)
    #expect(level.count == 1)
  }

  @Test("the level stays consistent in any order of keeping, using and removing")
  func model() {
    var level = MemoryLevel(bytesMax: 40, ageMax: 1000)
    var order: [Int64] = []
    var state: UInt64 = 42
    for _ in 0..<5000 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let id = Int64(state >> 33) % 9
      switch state >> 60 {
      case 0..<8:
        level.store(body(10), of: id, now: 0)
        order.removeAll { $0 == id }
        order.append(id)
        order = order.suffix(4)
      case 8..<14:
        let found = level.body(of: id, now: 0) != nil
        #expect(found == order.contains(id))
        if found {
          order.removeAll { $0 == id }
          order.append(id)
        }
      default:
        level.remove(id)
        order.removeAll { $0 == id }
      }
      #expect(level.count == order.count && level.bytes == order.count * 10)
    }
  }
}

import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The spaces that a node needs, and their channels.
@Suite("The watch of heads")
struct HeadWatchTests {
  private static let next = Int64(HeadWatch.channelCount)

  @Test("spaces have even parts of the channels, and each has one that never changes")
  func channels() {
    var sizes: [String: Int] = [:]
    for space in 1...Int64(HeadWatch.channelCount * 3) {
      sizes[HeadWatch.channel(of: space), default: 0] += 1
    }
    #expect(sizes.count == Int(HeadWatch.channelCount))
    #expect(Set(sizes.values) == [3])
    #expect(HeadWatch.channel(of: 5) == "ferry_head_5")
    #expect(HeadWatch.channel(of: 5 + Self.next) == "ferry_head_5")
    #expect(HeadWatch.channel(of: -1) == "ferry_head_127", "no identifier is impossible")
  }

  @Test("a channel begins with its first watcher, and ends with its last")
  func counts() {
    var watch = HeadWatch()
    #expect(watch.watch(5) == .begin(channel: "ferry_head_5"))
    #expect(watch.watch(5) == nil)
    #expect(watch.watch(5 + Self.next) == nil, "the same channel")
    #expect(watch.spaces(on: ["ferry_head_5", "ferry_head_6"]) == [5, 5 + Self.next])
    #expect(watch.unwatch(5) == nil)
    #expect(watch.needs(5))
    #expect(watch.unwatch(5) == nil)
    #expect(!watch.needs(5) && watch.needs(5 + Self.next))
    #expect(watch.unwatch(5 + Self.next) == .end(channel: "ferry_head_5"))
    #expect(watch.spaces == [] && watch.spaces(on: ["ferry_head_5"]) == [])
    #expect(watch.watch(5) == .begin(channel: "ferry_head_5"))
  }

  @Test("a space that the node has written to is needed for good")
  func keeps() {
    var watch = HeadWatch()
    #expect(watch.markWritten(7) == .begin(channel: "ferry_head_7"))
    #expect(watch.markWritten(7) == nil)
    #expect(watch.watch(7) == nil)
    #expect(watch.unwatch(7) == nil)
    #expect(watch.needs(7))
  }

  @Test("a watcher that was not there cannot be removed")
  func excess() {
    var watch = HeadWatch()
    #expect(watch.unwatch(3) == nil)
    #expect(watch.markWritten(3) == .begin(channel: "ferry_head_3"))
    #expect(watch.unwatch(3) == nil)
    #expect(watch.needs(3))
  }

  @Test("over any order of calls, the channels are those of the needed spaces", arguments: 1...20)
  func anyOrder(seed: UInt64) {
    var state = seed
    /// Knuth's linear congruential generator (MMIX).
    func below(_ bound: UInt64) -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (state >> 33) % bound
    }
    var watch = HeadWatch()
    var counts: [Int64: Int] = [:]
    var kept: Set<Int64> = []
    var channels: Set<String> = []
    for _ in 0..<600 {
      let space = Int64(below(4)) * Self.next + Int64(below(3))
      let change: HeadWatch.Change?
      switch below(40) {
      case 0:
        kept.insert(space)
        change = watch.markWritten(space)
      case 1..<20:
        counts[space, default: 0] += 1
        change = watch.watch(space)
      default:
        counts[space] = max(0, (counts[space] ?? 0) - 1)
        change = watch.unwatch(space)
      }
      switch change {
      case .begin(let channel): #expect(channels.insert(channel).inserted)
      case .end(let channel): #expect(channels.remove(channel) != nil)
      case nil: break
      }
      let needed = kept.union(counts.filter { $0.value > 0 }.keys)
      #expect(watch.spaces == needed.sorted())
      #expect(channels == Set(needed.map(HeadWatch.channel(of:))))
    }
  }
}

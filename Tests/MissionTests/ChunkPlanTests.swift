import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("A plan of chunks", .hangLimit)
struct ChunkPlanTests {
  private static func bounds(connections: Int = 3, rangeBytes: Int64 = 40) -> ChunkPlan.Bounds {
    var bounds = ChunkPlan.Bounds()
    bounds.connections = connections
    bounds.rangeBytes = rangeBytes
    bounds.wholeBytes = 0
    return bounds
  }

  /// Plans 95 bytes in ten chunks, the last one of five bytes.
  private func plan(_ bounds: ChunkPlan.Bounds = Self.bounds()) -> Planner {
    Planner(ChunkPlan(size: 95, chunkSize: 10, bounds: bounds))
  }

  /// Returns all requests ready now.
  private func drain(_ plan: Planner) -> [Range<Int64>] {
    var ranges: [Range<Int64>] = []
    while let range = plan.next() { ranges.append(range.bytes) }
    return ranges
  }

  @Test("a plan requests one range first, and shares the rest after ranges have worked")
  func sharing() {
    let plan = self.plan()
    #expect(drain(plan) == [0..<30])
    plan.rangesWork()
    #expect(drain(plan) == [30..<60, 60..<90])
    #expect(plan.active == 3)
  }

  @Test("a range is at most as large as the bound, and at least one chunk")
  func rangeBound() {
    let narrow = plan(Self.bounds(connections: 1, rangeBytes: 25))
    #expect(drain(narrow) == [0..<20])
    let tiny = plan(Self.bounds(connections: 1, rangeBytes: 3))
    #expect(drain(tiny) == [0..<10])
  }

  @Test("a plan joins only missing neighbours")
  func joining() {
    let plan = self.plan(Self.bounds(connections: 9, rangeBytes: 95))
    for chunk in [0, 3, 4, 8] { plan.verified(chunk) }
    plan.rangesWork()
    plan.change(to: .single)
    #expect(plan.missing == [1, 2, 5, 6, 7, 9])
    var ranges: [Range<Int64>] = []
    while let range = plan.next() {
      ranges.append(range.bytes)
      for chunk in range.chunks { plan.verified(chunk) }
      plan.ended(range)
    }
    #expect(ranges == [10..<30, 50..<80, 90..<95])
    #expect(plan.isComplete)
  }

  @Test("a plan continues inside a partial chunk, in a separate request")
  func insideChunk() {
    let plan = self.plan(Self.bounds(connections: 1, rangeBytes: 95))
    plan.keep(7, of: 0)
    plan.keep(4, of: 5)
    #expect(plan.bytesKept == 11)
    let first = plan.next()
    #expect(first == FetchRange(id: 1, chunks: 0..<5, bytes: 7..<50, hasRange: true))
    for chunk in 0..<5 { plan.verified(chunk) }
    #expect(plan.bytesKept == 4)
    first.map(plan.ended)
    #expect(plan.next()?.bytes == 54..<90)
  }

  @Test("the rest of an incomplete request is assigned again from its end")
  func unfinished() throws {
    let plan = self.plan(Self.bounds(connections: 1, rangeBytes: 30))
    let first = try #require(plan.next())
    plan.verified(0)
    plan.keep(3, of: 1)
    plan.ended(first)
    #expect(plan.next()?.bytes == 13..<40)
  }

  @Test("a wrong chunk stays with its new request when the former request ends")
  func ownership() throws {
    let plan = self.plan()
    let first = try #require(plan.next())
    plan.rangesWork()
    _ = try #require(plan.next())
    #expect(plan.failed(0, isWhole: true))
    #expect(!plan.isWanted(0, by: first))
    let other = try #require(plan.next())
    #expect(other.chunks.contains(0))
    plan.ended(first)
    #expect(plan.isWanted(0, by: other))
    #expect(plan.next()?.chunks.contains(0) == false)
  }

  @Test("a small file, and a file of one chunk, are requested without a range")
  func whole() throws {
    var bounds = Self.bounds()
    bounds.wholeBytes = 95
    let small = self.plan(bounds)
    #expect(small.next() == FetchRange(id: 1, chunks: 0..<10, bytes: 0..<95, hasRange: false))
    #expect(small.next() == nil)
    let single = Planner(ChunkPlan(size: 500, chunkSize: 500, bounds: Self.bounds()))
    let range = try #require(single.next())
    #expect(range == FetchRange(id: 1, chunks: 0..<1, bytes: 0..<500, hasRange: false))
    single.keep(123, of: 0)
    single.ended(range)
    #expect(single.next() == FetchRange(id: 2, chunks: 0..<1, bytes: 123..<500, hasRange: true))
  }

  @Test("a small file with received bytes is requested with a range")
  func smallInPart() {
    var bounds = Self.bounds()
    bounds.wholeBytes = 95
    let plan = self.plan(bounds)
    plan.verified(0)
    #expect(plan.next()?.hasRange == true)
  }

  @Test("a plan takes the whole from a server that ignores ranges, if no other request runs")
  func widening() throws {
    let plan = self.plan()
    plan.verified(4)
    plan.keep(3, of: 0)
    let asked = try #require(plan.next())
    let whole = try #require(plan.widen(asked))
    #expect(whole == FetchRange(id: 1, chunks: 0..<10, bytes: 0..<95, hasRange: false))
    #expect(plan.bytesKept == 0)
    #expect(plan.way == .single)
    #expect(plan.next() == nil)
    plan.ended(whole)
    #expect(plan.next()?.bytes == 0..<40)
  }

  @Test("if a server ignores a range later, the plan waits for other requests to end")
  func wideningBesideOthers() throws {
    let plan = self.plan()
    let first = try #require(plan.next())
    plan.rangesWork()
    let second = try #require(plan.next())
    #expect(plan.widen(second) == nil)
    plan.ended(second)
    #expect(plan.next() == nil)
    plan.ended(first)
    #expect(plan.next() != nil)
    #expect(plan.next() == nil)
  }

  @Test("a plan changes its method only to a later one")
  func ways() {
    let plan = self.plan()
    #expect(plan.change(to: .whole))
    #expect(!plan.change(to: .whole))
    #expect(!plan.change(to: .single))
    #expect(plan.next()?.hasRange == false)
    #expect(plan.change(to: .decoded))
  }

  @Test("a wrong chunk has three tries, and one more if it was kept from before")
  func tries() throws {
    let plan = self.plan()
    #expect(plan.failed(2, isWhole: false))
    #expect(plan.failed(2, isWhole: true))
    #expect(plan.failed(2, isWhole: true))
    #expect(!plan.failed(2, isWhole: true))
    let other = self.plan()
    #expect(other.failed(2, isWhole: false))
    #expect(other.failed(2, isWhole: false))
    #expect(other.failed(2, isWhole: false))
    #expect(!other.failed(2, isWhole: false))
  }

  @Test("a plan knows the verified length from the start, and reduces it if a chunk is wrong")
  func front() {
    let plan = self.plan()
    for chunk in [1, 0, 3] { plan.verified(chunk) }
    #expect(plan.frontBytes == 20)
    #expect(plan.bytesVerified == 30)
    plan.verified(2)
    #expect(plan.frontBytes == 40)
    plan.drop(1)
    #expect(plan.frontBytes == 10)
    #expect(plan.bytesVerified == 30)
    #expect(plan.missing.first == 1)
    for chunk in 0..<10 { plan.verified(chunk) }
    #expect(plan.frontBytes == 95)
    #expect(plan.isComplete)
  }

  @Test("an empty file needs no request")
  func empty() {
    let plan = Planner(ChunkPlan(size: 0, chunkSize: 10))
    #expect(plan.isComplete)
    #expect(plan.next() == nil)
  }
}

/// A plan in a box, since expectations cannot change their subjects.
@dynamicMemberLookup
private final class Planner {
  private var plan: ChunkPlan

  init(_ plan: ChunkPlan) { self.plan = plan }

  subscript<T>(dynamicMember path: KeyPath<ChunkPlan, T>) -> T { plan[keyPath: path] }

  func next() -> FetchRange? { plan.next() }
  func ended(_ range: FetchRange) { plan.ended(range) }
  func rangesWork() { plan.rangesWork() }
  func widen(_ range: FetchRange) -> FetchRange? { plan.widen(range) }
  @discardableResult func change(to way: ChunkPlan.Way) -> Bool { plan.change(to: way) }
  func verified(_ chunk: Int) { plan.verified(chunk) }
  func keep(_ count: Int64, of chunk: Int) { plan.recordBytes(count, of: chunk) }
  func drop(_ chunk: Int) { plan.drop(chunk) }
  func isWanted(_ chunk: Int, by range: FetchRange) -> Bool { plan.isWanted(chunk, by: range) }
  func failed(_ chunk: Int, isWhole: Bool) -> Bool { plan.failed(chunk, isWhole: isWhole) }
}

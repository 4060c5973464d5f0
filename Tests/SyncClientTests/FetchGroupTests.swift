import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncClient

@Suite("Requests for single records that a server rejects", .hangLimit)
struct FetchGroupTests {
  /// Fetches records from a server that rejects each request with one of `bad`.
  private func fetch(_ count: Int, without bad: Set<Int>) -> (
    found: [Int], left: [Int], requests: Int
  ) {
    var (waiting, found, left, requests) = (Array(0..<count)[...], [Int](), [Int](), 0)
    var group = FetchGroup(size: 1_000)
    while !waiting.isEmpty {
      let sent = waiting.prefix(group.size)
      requests += 1
      guard sent.contains(where: bad.contains) else {
        found += sent
        waiting = waiting.dropFirst(sent.count)
        group.accept()
        continue
      }
      switch group.reject(sent: sent.count) {
      case .smaller: break
      case .alone: left += [waiting.removeFirst()]
      case .tooMany: (left, waiting) = (left + waiting, [])
      }
    }
    return (found, left, requests)
  }

  @Test(
    "a record that the server rejects is alone after few requests, and all others are fetched",
    arguments: [[], [0], [999], [500, 501], [0, 400, 999]] as [Set<Int>])
  func isolates(bad: Set<Int>) {
    let result = fetch(1_000, without: bad)
    #expect(Set(result.left) == bad)
    #expect(result.found == (0..<1_000).filter { !bad.contains($0) })
    #expect(result.requests <= 1 + 30 * bad.count)
  }

  @Test("a server that rejects everything gets a bounded number of requests")
  func bounded() {
    let result = fetch(100_000, without: Set(0..<100_000))
    #expect(result.found.isEmpty)
    #expect(result.left.count == 100_000)
    #expect(result.requests == FetchGroup.rejectionsMax)
  }

  @Test(
    "a record that the server rejects stops no other, and is asked for again with the next sync")
  func engine() async throws {
    let directory = try TemporaryDirectory()
    let isHostile = Mutex(true)
    let server = ScriptedServer { request, _ in
      guard request.url.contains("/records"), isHostile.withLock({ $0 }),
        let body = request.body, String(decoding: body, as: UTF8.self).contains("\"bad\"")
      else { return nil }
      return ScriptedServer.json(Problem(.malformedMessage, "no").encoded(), status: 400)
    }
    let replica = try await server.replica(in: directory)
    try await replica.pull()
    let keys = (["bad"] + (0..<20).map { Name("r\($0)") }).map {
      RecordKey(table: "notes", record: $0)
    }
    try await replica.thread.run { try $0.refreshes.add(keys) }
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    #expect(try await replica.sync().pushed == 1)
    #expect(try await replica.thread.run { try $0.refreshes.contains(keys[0]) })
    #expect(try await !replica.thread.run { try $0.refreshes.contains(keys[1]) })
    // A watch does not begin a sync for it.
    #expect(try await replica.thread.run { try $0.refreshes.isEmpty() })
    try await replica.sync()
    let notes = try await replica.log(limit: 100).filter { $0.event == "unfetched" }
    #expect(notes.count == 1)
    isHostile.withLock { $0 = false }
    try await replica.sync()
    #expect(try await !replica.thread.run { try $0.refreshes.contains(keys[0]) })
  }
}

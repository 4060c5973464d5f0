import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncClient

@Suite("A watch of several spaces", .hangLimit)
struct SpaceWatchTests {
  @Test("a space that has stopped is tried again, while the others go on")
  func stopped() async throws {
    let directory = try TemporaryDirectory()
    let pages = Atomic<Int>(0)
    let server = ScriptedServer { request, _ in
      guard request.url.contains("/spaces/club/changes"),
        pages.wrappingAdd(1, ordering: .relaxed).newValue <= 2
      else { return nil }
      return ScriptedServer.webPage(200, "Welcome to our network")
    }
    var surroundings = ReplicaSurroundings.system
    let moment = Duration.milliseconds(1)
    surroundings.watch.stopped = RetryPolicy(
      delayBase: moment, delayMax: moment, attemptsMax: nil)
    surroundings.watch.remotePoll = moment
    let space = try #require(SpaceName("demo"))
    let replica = try await Replica.open(
      directory.file("replica.db").path,
      server: ServerAddress(url: "http://127.0.0.1:1", space: space), transport: server,
      in: surroundings)
    let club = try await replica.spaces.join("club")
    try await replica.write { try $0.execute("CREATE TABLE notes(id TEXT PRIMARY KEY)") }
    try await club.track("notes")
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a')") }
    let stops = Atomic<Int>(0)
    let (sent, note) = AsyncStream<Void>.makeStream()
    let watch = Task {
      try await replica.spaces.watch { space, event in
        guard space == "club" else { return }
        if case .stopped = event { stops.add(1, ordering: .relaxed) }
        if case .synced(let report) = event, report.pushed > 0 { note.yield() }
      }
    }
    for await _ in sent { break }
    watch.cancel()
    _ = await watch.result
    #expect(pages.load(ordering: .relaxed) > 2)
    #expect(stops.load(ordering: .relaxed) == 1, "the same reason is reported once")
  }
}

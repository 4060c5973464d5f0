import FerryNetworking
import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The activity that a program sees while a replica syncs.
@Suite("The activity of a replica", .hangLimit)
struct SyncActivityTests {
  private static let progress = SyncProgress(phase: .pulling, completed: 1, total: 2)

  private static func refused(_ code: ProblemCode) -> ReplicaError {
    .refused(Problem(code, "as the test requires"))
  }

  @Test("a report names resolved conflicts and those to decide apart")
  func conflicts() {
    var report = SyncReport()
    (report.conflicts, report.questions) = (8, 3)
    #expect(report.summary == "5 conflicts resolved, 3 conflicts to decide")
    (report.conflicts, report.questions) = (1, 1)
    #expect(report.summary == "1 conflict to decide")
  }

  @Test("a sync that leaves nothing behind is up to date; one that leaves work is not")
  func end() {
    var activity = SyncActivity()
    activity.begin()
    activity.advance(Self.progress)
    #expect(activity.phase == .syncing(Self.progress))
    activity.end(SyncReport(), needs: [], now: 7)
    #expect(activity.phase == .upToDate(since: 7))
    var report = SyncReport()
    report.left = 1
    activity.begin()
    activity.end(report, needs: [.quarantine], now: 8)
    #expect(activity.phase == .idle)
    #expect(activity.needs == [.quarantine])
  }

  @Test(
    "a failure names the phase and the need",
    arguments: [
      (ReplicaError.offline("away"), SyncActivity.Phase.offline("away"), nil),
      (.tokenMissing("gone"), .failed("gone"), SyncActivity.Need.token),
      (refused(.unauthorized), .failed("\(refused(.unauthorized))"), .token),
      (refused(.forbidden), .failed("\(refused(.forbidden))"), .token),
      (refused(.upgradeRequired), .failed("\(refused(.upgradeRequired))"), .upgrade),
      (refused(.unavailable), .offline("\(refused(.unavailable))"), nil),
    ])
  func failure(_ error: ReplicaError, _ phase: SyncActivity.Phase, _ need: SyncActivity.Need?) {
    var activity = SyncActivity()
    activity.begin()
    activity.fail(error)
    #expect(activity.phase == phase)
    #expect(activity.needs == Set([need].compactMap { $0 }))
    activity.begin()
    activity.end(SyncReport(), needs: [], now: 1)
    #expect(activity.needs.isEmpty, "the next sync succeeded")
  }

  @Test("a cancelled sync leaves the phase before it, and late progress changes nothing")
  func cancelled() {
    var activity = SyncActivity()
    activity.begin()
    activity.end(SyncReport(), needs: [], now: 1)
    activity.begin()
    activity.fail(.cancelled)
    activity.advance(Self.progress)
    #expect(activity.phase == .upToDate(since: 1))
  }

  @Test("a replica reports its syncs, and earlier reasons to ask the user")
  func reported() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer()
    let replica = try await Replica.open(
      directory.file("replica.db").path,
      server: ServerAddress(checking: "http://127.0.0.1:1", space: "demo"), transport: server,
      in: .system)
    var activity = replica.activity().makeAsyncIterator()
    #expect(await activity.next()?.phase == .idle)
    try await replica.sync()
    while let next = await activity.next() {
      if case .upToDate = next.phase { break }
    }
    try await replica.thread.run {
      try $0.connection.execute(
        "INSERT INTO ferry_operations(id, state, grp, base, tbl, record, kind, data) "
          + "VALUES (randomblob(16), 3, 1, 0, 't', 'r', 'delete', NULL)")
      try $0.connection.execute(
        "INSERT INTO ferry_failures(seq, entry, code, detail, at) "
          + "SELECT seq, 1, 'x', 'y', 0 FROM ferry_operations")
    }
    #expect(try await replica.thread.run { try $0.reports.needs() } == [.quarantine])
    for await next in replica.activity() where next.needs == [.quarantine] { break }
  }
}

import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The work in a file and the ends of syncs in, the watch's steps out.
@Suite("The syncs of a watch", .hangLimit)
struct WatchRulesTests {
  private typealias Work = WatchRules.Work

  private static let works: [(WatchRules.Work, Bool)] = [
    (Work(applied: nil), true),
    (Work(applied: 4), true),
    (Work(applied: 5), false),
    (Work(applied: 6), false),
    (Work(applied: 5, hasOperations: true), true),
    (Work(applied: 5, hasUnsentName: true), true),
    (Work(applied: 5, hasRefreshes: true), true),
    (Work(applied: 5, hasReturning: true), true),
    (Work(applied: 5, hasUnrecorded: true), true),
  ]

  @Test(
    "a sync is due for changes of others after the head, and for each kind of own work",
    arguments: works)
  func due(_ work: WatchRules.Work, _ isDue: Bool) {
    #expect(work.isDue(at: 5) == isDue)
  }

  @Test("a watch syncs again after a pause while a sync has left something")
  func success() {
    var rules = WatchRules()
    #expect(rules.succeed(SyncReport()) == .wait)
    var report = SyncReport()
    report.left = 1
    #expect(rules.succeed(report) == .retry)
    report = SyncReport()
    report.unreconciled = 1
    #expect(rules.succeed(report) == .retry)
  }

  private static let failures: [(ReplicaError, WatchRules.Step, WatchRules.Step)] = [
    (.cancelled, .stop, .stop), (.suspended, .stop, .stop), (.closed, .stop, .stop),
    (.offline("no route"), .retry, .retry),
    (.refused(Problem(.storageQuota, "full")), .retry, .retry),
    (.refused(Problem(.unauthorized, "no")), .fail, .fail),
    (.untrusted("an expired certificate"), .fail, .retry),
  ]

  @Test(
    "a watch continues after temporary failures, and with a server trusted before",
    arguments: failures)
  func failure(_ error: ReplicaError, _ before: WatchRules.Step, _ after: WatchRules.Step) {
    var rules = WatchRules()
    #expect(rules.fail(error) == before)
    _ = rules.succeed(SyncReport())
    #expect(rules.fail(error) == after)
  }
}

import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// A replica that was offline for longer than the server keeps history.
@Suite(.hangLimit)
struct ExpiredCursorTests {
  private let maker = PageMaker()

  @Test(
    "a refused cursor begins the replacement of its reason, or continues the current one",
    arguments: [
      (ProblemCode.cursorExpired, nil, Replacement.removing),
      (.cursorExpired, .removing, .removing), (.cursorExpired, .removingLost, .removingLost),
      (.cursorExpired, .rescuing, .rescuing), (.lostAndExpired, nil, .removingLost),
      (.lostAndExpired, .removing, .removingLost), (.lostAndExpired, .rescuing, .rescuing),
      (.historyLost, nil, .rescuing), (.historyLost, .removingLost, .rescuing),
      (.epochChanged, .removing, .rescuing), (.cursorAhead, nil, .rescuing),
    ] as [(ProblemCode, Replacement?, Replacement)])
  func kinds(code: ProblemCode, current: Replacement?, expected: Replacement) {
    #expect(Replacement(code, during: current) == expected)
  }

  @Test("rows that were lost or deleted are removed and stay in the log; pending writes stay")
  func lost() throws {
    let replica = try ReplicaFixture.withTasks()
    let records = ["a", "b", "c"].enumerated().map { index, record in
      maker.change(Int64(index) + 1, "tasks", record, [Column("title", .text("of \(record)"))])
    }
    try replica.apply(records)
    try replica.run("UPDATE tasks SET title = 'mine' WHERE id = 'a'")
    try replica.run("INSERT INTO tasks(id, title) VALUES ('d', 'new')")
    try ReplacingPull(replica.file).begin(Problem(.lostAndExpired, "lost and old"))
    try replica.apply([records[0]], head: 9)
    #expect(
      try replica.rows("SELECT id, title FROM tasks ORDER BY id") == [
        ["a", "mine"], ["d", "new"],
      ])
    #expect(try replica.pending.map(\.key.record) == ["a", "d"])
    let log = try replica.rows("SELECT detail FROM ferry_log WHERE event = 'lost' ORDER BY seq")
    #expect(log.count == 2)
    for (entry, record) in zip(log, ["b", "c"]) {
      guard case .text(let detail)? = entry.first else {
        Issue.record("no text")
        continue
      }
      #expect(
        detail.hasPrefix("the server does not have tasks/\(record) any more; here it held {")
          && detail.contains(#""title":"of \#(record)""#), "\(detail)")
    }
    #expect(try replica.file.syncState().replacement == nil)
  }

  @Test("a copied file that returns too late does not send operations confirmed long ago")
  func copied() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'one')")
    _ = try replica.file.chain.receive(replica.receipt(replica.freeze()[0], first: 1))
    #expect(try replica.pending.isEmpty)
    try replica.run("UPDATE tasks SET title = 'two' WHERE id = 'a'")
    let update = try replica.pending.map(\.id)
    let name = try replica.file.identity().device
    try ReplacingPull(replica.file).begin(Problem(.cursorExpired, "old"))
    // A copy has gone on with the chain; the insert is in the history, or was pruned from it.
    try replica.apply(
      [maker.change(1, "tasks", "a", [Column("title", "one")])], head: 9,
      tail: OperationID(UniqueID(high: 9, low: 9)))
    let sent = try replica.freeze()
    #expect(sent.flatMap(\.operations).map(\.kind) == [.update])
    #expect(sent.flatMap(\.operations).map(\.id) == update)
    #expect(sent.map(\.dependency) == [nil])
    #expect(try replica.file.identity().device != name)
    #expect(try replica.rows("SELECT title FROM tasks") == [["two"]])
  }
}

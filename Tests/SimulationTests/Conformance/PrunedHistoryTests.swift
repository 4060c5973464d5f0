import FerryConformance
import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The server's pruned operations are kept for the oracles, which judge them.
@Suite(.hangLimit)
struct PrunedHistoryTests {
  // MARK: Evidence

  @Test("the evidence of a pruned embedded store equals that of the whole one")
  func embedded() async throws {
    let directory = try TemporaryDirectory()
    let store = try await SQLiteStore(directory: directory.url.path)
    let path = directory.file("ferry.sqlite").path
    let connection = try SQLiteConnection(path: path, mode: .readWrite)
    try await check(store) {
      try PrunedHistory.install(in: connection)
    } evidence: {
      try ServerEvidence.read(connection, space: $0)
    }
  }

  @Test("the evidence of a pruned PostgreSQL store equals that of the whole one")
  func postgres() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let store = try await PostgresStore(url: url)
    try await check(store) {
      try PrunedHistory.install(in: try PostgresConnection(url: url))
    } evidence: {
      try ServerEvidence.read(try PostgresConnection(url: url), space: $0)
    }
  }

  private func check(
    _ store: any SyncStore, keep: () throws -> Void,
    evidence: (SpaceName) throws -> ServerEvidence
  ) async throws {
    let name = try #require(SpaceName("pruned"))
    let space = try await store.createSpace(name).id
    var maker = HistoryMaker()
    let operations = [
      maker.operation(.insert, "a", at: 10, ["title": "x"]), maker.operation(.delete, "a", at: 11),
      maker.operation(.insert, "b", at: 12, ["title": "y"]),
      maker.operation(.update, "b", at: 13, ["stars": 2]),
    ].map {
      SyncOperation(id: $0.id, key: $0.key, kind: $0.kind, time: $0.time, columns: $0.columns)
    }
    let packet = Packet(
      device: HistoryMaker.device(1), dependency: nil, operations: operations, continues: false)
    _ = try await store.ingest([IncomingPacket(packet, byteCount: 100)], into: space, now: 0)
    let before = try evidence(name)
    #expect(before.history.count == 4 && before.forgotten.isEmpty)
    for _ in 0..<2 { try keep() }
    let request = HorizonRequest(now: 1_000, keeping: Retention(milliseconds: 0))
    _ = try await store.raiseRetentionHorizon(of: space, request)
    for after in [nil, 3] as [SequenceNumber?] {
      _ = try await store.prune(
        PruneSlice(after: after, bufferedBefore: 0, rows: 100), of: space)
    }
    let pruned = try evidence(name)
    #expect(pruned.history.map(\.prunedAt) == [4, 4, 4, nil])
    #expect(
      pruned.history.map(\.id) == before.history.map(\.id)
        && pruned.history.map(\.columns) == before.history.map(\.columns))
    let gone = RecordKey(table: "notes", record: "a")
    #expect(pruned.forgotten == [ForgottenRecord(key: gone, head: 4)])
    #expect(before.records[gone] != nil && pruned.records[gone] == nil)
    await store.close()
  }

  // MARK: Oracles

  /// Makes a history with a pruned record: it is deleted and forgotten; then a device inserts it
  /// after a time offline, with an earlier time.
  private static func revived() -> (maker: HistoryMaker, told: [RunEvent]) {
    var maker = HistoryMaker()
    let insert = maker.add(.insert, "a", by: 1, at: 10, ["title": "x"])
    let delete = maker.add(.delete, "a", by: 1, at: 30, base: 1)
    maker.prune("a")
    let late = maker.add(.insert, "a", by: 2, at: 20, ["title": "late"])
    let events = [
      RunEvent.committed(device: "one", [insert, delete]), .committed(device: "two", [late]),
    ]
    return (maker, events)
  }

  @Test("a conflict with a pruned record is treated as one with a record that never existed")
  func forgotten() {
    let (maker, told) = Self.revived()
    var bench = OracleBench()
    let reader = maker.replica(3)
    var found = (told + [.read(device: "three", reader)]).flatMap { bench.see($0) }
    found += bench.judge(maker.final(["three": reader]))
    #expect(found == [])
    // If the tombstone were still there, all of this would be wrong.
    var final = maker.final(["three": reader])
    final.server.forgotten = []
    #expect(ReferenceState.found(ReferenceState(), [], final).count == 1)
    #expect(ConflictsAccounted.found(ConflictsAccounted(), [], final).count >= 1)
    #expect(NoSkippedChange.found(NoSkippedChange(), [], final).count == 1)
  }

  @Test("the oracle finds a pruned record that existed")
  func alive() {
    var maker = HistoryMaker()
    maker.add(.insert, "a", by: 1, at: 10, ["title": "x"])
    maker.prune("a")
    #expect(
      ReferenceState.found(ReferenceState(), [], maker.final())
        == ["the server's record notes/a existed at its pruning"])
  }

  @Test("a record of a table that asks may be gone although its newest operation is an insert")
  func asked() {
    var maker = HistoryMaker()
    maker.add(.insert, "a", by: 1, at: 10, ["body": "x"], table: "drafts")
    maker.add(.delete, "a", by: 1, at: 20, base: 1, table: "drafts")
    // The author had not seen the delete, so the insert is a question.
    maker.add(.insert, "a", by: 2, at: 30, ["body": "x"], table: "drafts")
    maker.prune("a", table: "drafts")
    #expect(ReferenceState.found(ReferenceState(), [], maker.final()) == [])
    maker.add(.insert, "b", by: 1, at: 40, ["body": "y"], table: "drafts")
    maker.prune("b", table: "drafts")
    #expect(
      ReferenceState.found(ReferenceState(), [], maker.final())
        == ["the server's record drafts/b existed at its pruning"])
  }

  @Test("an operation may be in the history again only after it was pruned")
  func again() {
    var maker = HistoryMaker()
    var increment = maker.operation(.update, "a", at: 20, ["votes": 3], table: "tallies")
    increment.increments = ["votes"]
    maker.add(.insert, "a", by: 1, at: 10, ["votes": 5], table: "tallies")
    maker.take(increment, by: 1, base: 1)
    let told = [RunEvent.committed(device: "one", [increment])]
    var twice = maker
    twice.take(increment, by: 2, base: 1)
    func found(_ final: FinalEvidence) -> Int {
      CounterSums.found(CounterSums(), told, final).count
        + AcknowledgedOperations.found(AcknowledgedOperations(), told, final).count
    }
    #expect(found(twice.final()) == 2)
    maker.prune("none")
    maker.take(increment, by: 2, base: 1)
    #expect(found(maker.final()) == 0)
    maker.take(increment, by: 3, base: 1)
    #expect(found(maker.final()) == 2)
  }

  @Test("a repeated operation has its first place in its file's order")
  func order() {
    var maker = HistoryMaker()
    let first = maker.add(.insert, "a", by: 1, at: 10, ["title": "x"])
    let second = maker.add(.update, "a", by: 1, at: 11, ["title": "y"], base: 1)
    maker.prune("none")
    maker.take(first, by: 2)
    let told = [RunEvent.committed(device: "one", [first, second])]
    #expect(OwnOrder.found(OwnOrder(), told, maker.final()) == [])
  }
}

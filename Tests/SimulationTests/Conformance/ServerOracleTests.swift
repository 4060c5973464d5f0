import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracles on the server's history and records.
@Suite(.hangLimit)
struct ServerOracleTests {
  // MARK: Reference state

  @Test("records that result from the history pass")
  func rightState() {
    #expect(ReferenceState.found(ReferenceState(), [], HistoryMaker.busy().final()) == [])
  }

  @Test("the oracle finds a record with a wrong value, a wrong writer or a lost column")
  func wrongValue() throws {
    var final = HistoryMaker.busy().final()
    let key = RecordKey(table: "notes", record: "b")
    let title = try #require(final.server.records[key]?.columns[0])
    final.server.records[key]?.columns[0].value = "else"
    #expect(ReferenceState.found(ReferenceState(), [], final).count == 1)
    final.server.records[key]?.columns[0] = title
    final.server.records[key]?.columns[0].stamp = Stamp(
      time: title.stamp.time, device: HistoryMaker.device(1))
    #expect(ReferenceState.found(ReferenceState(), [], final).count == 1)
    final.server.records[key]?.columns = []
    #expect(
      ReferenceState.found(ReferenceState(), [], final)
        == ["the server's record notes/b lacks column title"])
  }

  // MARK: Later than seen

  @Test("the oracle finds a write that is older than a write its author had seen")
  func olderThanSeen() {
    #expect(LaterThanSeen.found(LaterThanSeen(), [], HistoryMaker.busy().final()) == [])
    var maker = HistoryMaker.busy()
    maker.add(.update, "b", by: 1, at: 35, ["title": "undone"], base: 7)
    #expect(LaterThanSeen.found(LaterThanSeen(), [], maker.final()) == [])
    maker.add(.update, "b", by: 1, at: 36, ["title": "undone"], base: 8)
    maker.add(.delete, "b", by: 1, at: 37, base: 8)
    maker.add(.insert, "a", by: 1, at: 45, ["title": "undone"], base: 10)
    #expect(LaterThanSeen.found(LaterThanSeen(), [], maker.final()).count == 3)
  }

  @Test("a re-uploaded row and a pruned tombstone count as older than every write")
  func olderThanNothing() {
    var maker = HistoryMaker.busy()
    maker.take(
      maker.operation(.update, "b", at: 41, ["title": "later"]), by: 1, base: 8,
      earlier: ["stars": (3, 0)])
    maker.prune("a")
    maker.add(.insert, "a", by: 1, at: 45, ["title": "anew"], base: 10)
    #expect(LaterThanSeen.found(LaterThanSeen(), [], maker.final()) == [])
  }

  @Test("the oracle finds revived, missing and invented records")
  func wrongLife() {
    var final = HistoryMaker.busy().final()
    final.server.records[RecordKey(table: "notes", record: "a")]?.deleted = nil
    final.server.records[RecordKey(table: "notes", record: "b")] = nil
    final.server.records[RecordKey(table: "notes", record: "c")] = RecordState()
    #expect(ReferenceState.found(ReferenceState(), [], final).count == 3)
  }

  // MARK: Conflicts

  @Test("outcomes that list every losing value pass")
  func rightConflicts() {
    #expect(ConflictsAccounted.found(ConflictsAccounted(), [], HistoryMaker.busy().final()) == [])
  }

  @Test("the oracle finds each missing conflict", arguments: HistoryMaker.busy().history.indices)
  func missingConflict(_ index: Int) {
    var final = HistoryMaker.busy().final()
    let conflicts = final.server.history[index].outcome.conflicts
    for place in conflicts.indices {
      final.server.history[index].outcome.conflicts = conflicts
      final.server.history[index].outcome.conflicts.remove(at: place)
      #expect(ConflictsAccounted.found(ConflictsAccounted(), [], final).count == 1)
    }
  }

  @Test("the busy history has conflicts of all kinds")
  func kinds() {
    let outcomes = HistoryMaker.busy().history.map(\.outcome)
    #expect(outcomes.contains { $0.isOverruled && $0.conflicts.contains { $0.column == nil } })
    #expect(outcomes.contains { !$0.isOverruled && $0.conflicts.count > 1 })
    #expect(outcomes.contains { !$0.isOverruled && $0.conflicts.count == 1 })
    #expect(outcomes.contains { $0.isOverruled && $0.conflicts.contains { $0.column != nil } })
  }

  @Test("the oracle finds a loser without a report, or with a wrong value in it")
  func wrongOutcome() throws {
    var maker = HistoryMaker()
    maker.add(.insert, "a", by: 1, at: 10, ["title": "first"])
    maker.add(.update, "a", by: 1, at: 30, ["title": "later"], base: 1)
    maker.add(.update, "a", by: 2, at: 20, ["title": "earlier"], base: 1)
    var final = maker.final()
    let right = final.server.history[2].outcome
    #expect(right.isOverruled)
    final.server.history[2].outcome.isOverruled = false
    #expect(
      ConflictsAccounted.found(ConflictsAccounted(), [], final).contains {
        $0.contains("it was overruled in title")
      })
    let conflict = try #require(right.conflicts.first)
    final.server.history[2].outcome = Outcome(
      conflicts: [
        Conflict(
          column: "title", lost: "later", loser: conflict.loser, winner: conflict.winner)
      ], isOverruled: true)
    #expect(ConflictsAccounted.found(ConflictsAccounted(), [], final).count == 1)
  }

  @Test("a value replaced by its own writer, or by an author who had seen it, needs no conflict")
  func knownOverwriting() {
    var maker = HistoryMaker()
    maker.add(.insert, "a", by: 1, at: 10, ["title": "first"])
    maker.add(.update, "a", by: 1, at: 20, ["title": "second"], base: 0)
    maker.add(.update, "a", by: 2, at: 30, ["title": "third"], base: 2)
    maker.add(.update, "a", by: 3, at: 40, ["title": "third"], base: 0)
    maker.add(.delete, "a", by: 1, at: 50, base: 4)
    #expect(maker.history.allSatisfy { $0.outcome == .applied })
    #expect(ConflictsAccounted.found(ConflictsAccounted(), [], maker.final()) == [])
  }

  // MARK: Order

  @Test("a file's operations in their order pass, and the oracle finds swapped ones")
  func ownOrder() {
    var maker = HistoryMaker()
    let first = maker.operation(.insert, "a", at: 10, ["title": "x"])
    let merged = maker.operation(.update, "a", at: 11, ["title": "y"])
    let last = maker.operation(.insert, "b", at: 12, ["title": "z"])
    let events: [RunEvent] = [.committed(device: "one", [first, merged, last])]
    var right = maker
    right.take(first, by: 1)
    right.take(last, by: 1)
    #expect(OwnOrder.found(OwnOrder(), events, right.final()) == [])
    var wrong = maker
    wrong.take(last, by: 1)
    wrong.take(first, by: 1)
    #expect(OwnOrder.found(OwnOrder(), events, wrong.final()).count == 1)
    // A delete of an unknown record may come at any time, once packets were cut again.
    let gone = maker.operation(.delete, "a", at: 11)
    var late = maker
    late.take(last, by: 1)
    late.take(gone, by: 1)
    let cut: [RunEvent] = [.committed(device: "one", [first, gone, last])]
    #expect(OwnOrder.found(OwnOrder(), cut, late.final()) == [])
    // Each on a separate device: no order is required.
    let apart: [RunEvent] = [
      .committed(device: "one", [first]), .committed(device: "two", [last]),
    ]
    #expect(OwnOrder.found(OwnOrder(), apart, wrong.final()) == [])
  }
}

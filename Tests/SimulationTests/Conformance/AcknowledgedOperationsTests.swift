import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// Whether every recorded operation is found to have reached the history, or not.
@Suite(.hangLimit)
struct AcknowledgedOperationsTests {
  private func found(_ events: [RunEvent], _ final: FinalEvidence) -> [String] {
    AcknowledgedOperations.found(AcknowledgedOperations(), events, final)
  }

  @Test("a history that contains all operations passes")
  func all() {
    var maker = HistoryMaker()
    let insert = maker.add(.insert, "a", by: 1, at: 10, ["title": "x"])
    let update = maker.add(.update, "a", by: 1, at: 11, ["stars": 1])
    let delete = maker.add(.delete, "a", by: 1, at: 12)
    #expect(
      found([.committed(device: "one", [insert, update, delete])], maker.final()) == [])
  }

  @Test("the oracle finds a lost operation, whether it was confirmed or only committed")
  func lost() {
    var maker = HistoryMaker()
    let kept = maker.add(.insert, "a", by: 1, at: 10, ["title": "x"])
    let lost = maker.operation(.update, "a", at: 11, ["stars": 1])
    let committed: [RunEvent] = [.committed(device: "one", [kept, lost])]
    #expect(found(committed, maker.final()).count == 1)
    #expect(
      found(committed + [.confirmed(device: "one", [kept.id, lost.id])], maker.final()).count == 1)
  }

  @Test("the oracle finds duplicate operations in the history, gaps and a wrong head")
  func sequences() {
    var maker = HistoryMaker()
    let insert = maker.add(.insert, "a", by: 1, at: 10, ["title": "x"])
    let events: [RunEvent] = [.committed(device: "one", [insert])]
    var twice = maker
    twice.take(insert, by: 1)
    #expect(found(events, twice.final()).count == 1)
    maker.add(.insert, "b", by: 2, at: 10)
    var final = maker.final()
    final.server.history[1].sequence = 3
    final.server.head = 3
    #expect(found(events, final) == ["the history's sequence 2 is 3"])
    final.server.history.removeLast()
    #expect(found(events, final) == ["the history ends at 1, the head is 3"])
  }

  @Test("a merge keeps columns with their times in the next operation on the record")
  func merged() {
    var maker = HistoryMaker()
    let insert = maker.operation(.insert, "a", at: 10, ["title": "x", "stars": 1])
    let update = maker.operation(.update, "a", at: 20, ["title": "y"])
    let events: [RunEvent] = [.committed(device: "one", [insert, update])]
    var sent = update
    sent.kind = .insert
    var right = maker
    right.take(sent, by: 1, earlier: ["stars": (1, 10)])
    #expect(found(events, right.final()) == [])
    var lacking = maker
    lacking.take(sent, by: 1)
    #expect(found(events, lacking.final()).count == 1)
    var untimely = maker
    untimely.take(sent, by: 1, earlier: ["stars": (1, 15)])
    #expect(found(events, untimely.final()).count == 1)
    var changed = maker
    changed.take(sent, by: 1, earlier: ["stars": (2, 10)])
    #expect(found(events, changed.final()).count == 1)
    var unborn = maker
    unborn.take(update, by: 1, earlier: ["stars": (1, 10)])
    #expect(found(events, unborn.final()).count == 1)
  }

  @Test("the oracle finds a merged operation without the earliest base")
  func base() {
    var maker = HistoryMaker()
    var first = maker.operation(.update, "a", at: 10, ["title": "x"])
    var second = maker.operation(.update, "a", at: 20, ["stars": 2])
    (first.base, second.base) = (3, 9)
    let events: [RunEvent] = [.committed(device: "one", [first, second])]
    var right = maker
    right.take(second, by: 1, base: 3, earlier: ["title": ("x", 10)])
    #expect(found(events, right.final()) == [])
    maker.take(second, by: 1, base: 9, earlier: ["title": ("x", 10)])
    #expect(found(events, maker.final()).count == 1)
  }

  @Test("an insert and its delete cancel out; a delete alone must not be lost")
  func cancelled() {
    var maker = HistoryMaker()
    let insert = maker.operation(.insert, "a", at: 10, ["title": "x"])
    let update = maker.operation(.update, "a", at: 11, ["title": "y"])
    let delete = maker.operation(.delete, "a", at: 12)
    #expect(found([.committed(device: "one", [insert, update, delete])], maker.final()) == [])
    #expect(found([.committed(device: "one", [update, delete])], maker.final()).count == 2)
    maker.take(delete, by: 1)
    #expect(found([.committed(device: "one", [insert, update, delete])], maker.final()) == [])
    #expect(found([.committed(device: "one", [update, delete])], maker.final()) == [])
  }

  @Test("after a power loss, unconfirmed operations may be lost, and confirmed ones must not")
  func lostPower() {
    var maker = HistoryMaker()
    let one = maker.operation(.insert, "a", at: 10, ["title": "x"])
    let two = maker.operation(.insert, "b", at: 11, ["title": "y"])
    let three = maker.operation(.insert, "c", at: 12, ["title": "z"])
    var survivors = maker.replica(1, [])
    survivors.pending = [two.id]
    let events: [RunEvent] = [
      .committed(device: "one", [one, two, three]), .confirmed(device: "one", [one.id]),
      .lostPower(device: "one", survivors: survivors),
    ]
    #expect(found(events, maker.final()).count == 2)
    maker.take(one, by: 1)
    #expect(found(events, maker.final()).count == 1)
    maker.take(two, by: 1)
    #expect(found(events, maker.final()) == [])
  }

  @Test("an insert in a backup and its delete can cancel out before the file is restored")
  func cancelledBeforeSetBack() {
    var maker = HistoryMaker()
    let insert = maker.operation(.insert, "a", at: 10, ["title": "x"])
    let delete = maker.operation(.delete, "a", at: 11)
    var backup = maker.replica(1, [])
    backup.pending = [insert.id]
    let before: [RunEvent] = [
      .committed(device: "one", [insert]), .lostPower(device: "one", survivors: backup),
      .committed(device: "one", [delete]), .confirmed(device: "one", [insert.id, delete.id]),
    ]
    let empty = RunEvent.lostPower(device: "one", survivors: maker.replica(1, []))
    #expect(found(before + [empty], maker.final()) == [])
    let setBack = RunEvent.lostPower(device: "one", survivors: backup)
    #expect(found(before + [setBack], maker.final()) != [])
    maker.take(insert, by: 1)
    #expect(found(before + [setBack], maker.final()) == [])
  }

  @Test("operations of two copies must come from one of them, alone or merged")
  func copied() {
    var maker = HistoryMaker()
    let shared = maker.operation(.insert, "a", at: 10, ["title": "x"])
    let later = maker.operation(.update, "a", at: 11, ["stars": 2])
    var evidence = maker.replica(1, [])
    evidence.pending = [shared.id]
    let events: [RunEvent] = [
      .committed(device: "one", [shared]), .copied(device: "two", from: "one", evidence),
      .committed(device: "two", [later]),
    ]
    var sent = later
    sent.kind = .insert
    #expect(found(events, maker.final()).count == 2)
    var merged = maker
    merged.take(sent, by: 2, earlier: ["title": ("x", 10)])
    #expect(found(events, merged.final()) == [])
    merged.take(shared, by: 1)
    #expect(found(events, merged.final()) == [])
    var apart = maker
    apart.take(shared, by: 1)
    apart.take(later, by: 2)
    #expect(found(events, apart.final()) == [])
  }

  @Test("rows that cascaded before they were sent do not count as lost; others do")
  func cascade() {
    var maker = HistoryMaker()
    let item = maker.operation(.insert, "i", at: 10, ["list": "l", "done": 0], table: "items")
    let events: [RunEvent] = [.committed(device: "one", [item])]
    maker.add(.insert, "l", by: 2, at: 5, ["name": "list"], table: "lists")
    #expect(found(events, maker.final()).count == 1)
    maker.add(.delete, "l", by: 2, at: 20, table: "lists")
    #expect(found(events, maker.final()) == [])
  }

  @Test("a row that went with its parent before it was sent may come back without its first insert")
  func restored() {
    var maker = HistoryMaker()
    var first = maker.operation(.insert, "v/c", at: 10, ["up": "v", "note": "x"], table: "vines")
    var second = maker.operation(.insert, "v/c", at: 30, ["up": "v", "note": "x"], table: "vines")
    (first.base, second.base) = (2, 15)
    let events: [RunEvent] = [.committed(device: "one", [first, second])]
    maker.add(.insert, "v", by: 2, at: 5, ["note": "v"], table: "vines")
    var cut = maker
    cut.add(.delete, "v", by: 2, at: 20, table: "vines")
    cut.take(second, by: 1, base: 15)
    #expect(found(events, cut.final()) == [])
    maker.take(second, by: 1, base: 15)
    #expect(found(events, maker.final()).count == 1)
  }

  @Test("the oracle accepts unreported operations that it finds in the evidence")
  func unheard() {
    var maker = HistoryMaker()
    let heard = maker.operation(.update, "a", at: 10, ["title": "x"])
    let unheard = maker.operation(.delete, "a", at: 20)
    var evidence = maker.replica(1, [])
    evidence.pending = [heard.id, unheard.id]
    let events: [RunEvent] = [
      .committed(device: "one", [heard]), .read(device: "one", evidence),
    ]
    #expect(found(events, maker.final()).count == 1)
    maker.take(unheard, by: 1)
    #expect(found(events, maker.final()) == [])
  }

  @Test("a base may be lower only if the operation may carry an unreported one of a pull")
  func unheardBase() {
    var maker = HistoryMaker()
    var first = maker.operation(.update, "a", at: 10, ["title": "x"])
    let pulled = maker.operation(.update, "a", at: 20, ["title": "p"])
    var last = maker.operation(.update, "a", at: 30, ["title": "y"])
    (first.base, last.base) = (3, 9)
    let committed = RunEvent.committed(device: "one", [first, last])
    var (pending, archive) = (maker.replica(1, []), maker.replica(1, []))
    (pending.pending, archive.archived) = ([pulled.id], [first.id, pulled.id, last.id])
    let read = RunEvent.read(device: "one", pending)
    maker.take(first, by: 1, base: 3)
    var lower = maker
    lower.take(last, by: 1, base: 5)
    #expect(found([committed], lower.final()).count == 1)
    #expect(found([committed, read], lower.final()) == [])
    #expect(found([committed], lower.final(["one": archive])) == [])
    var higher = maker
    higher.take(last, by: 1, base: 10)
    #expect(found([committed, read], higher.final()).count == 1)
    // It was sent by itself, or before the last operation on the record.
    lower.take(pulled, by: 1, base: 5)
    #expect(found([committed, read], lower.final()).count == 1)
    pending.pending = [maker.operation(.update, "a", at: 9).id]
    maker.take(last, by: 1, base: 5)
    #expect(found([committed, .read(device: "one", pending)], maker.final()).count == 1)
  }

  @Test("a copy may hold an operation that an unreported one carried under an earlier identity")
  func earlierIdentity() {
    var maker = HistoryMaker()
    let edit = maker.operation(.update, "a", at: 10, ["stars": 5])
    let unheard = maker.operation(.insert, "a", at: 11, ["stars": 5])
    let later = maker.operation(.update, "a", at: 20, ["title": "y"])
    maker.take(unheard, by: 1)
    maker.take(later, by: 2)
    var copied = maker.replica(2, [])
    copied.archived = [edit.id, unheard.id, later.id]
    let events: [RunEvent] = [
      .committed(device: "one", [edit]), .read(device: "one", maker.replica(1, [])),
      .confirmed(device: "one", [edit.id]), .read(device: "one", maker.replica(2, [])),
      .committed(device: "one", [later]), .copied(device: "two", from: "one", copied),
    ]
    #expect(found(events, maker.final()) == [])
  }

  @Test("an edit may carry the unreported insert of its row, and only then is it an insert")
  func unheardInsert() {
    var maker = HistoryMaker()
    let first = maker.operation(.update, "a", at: 9, ["title": "x"])
    let insert = maker.operation(.insert, "a", at: 10, ["title": "x"])
    let last = maker.operation(.update, "a", at: 11, ["stars": 5])
    var pending = maker.replica(1, [])
    pending.pending = [insert.id]
    var sent = last
    sent.kind = .insert
    // The insert has written the first edit's value again, at the insert's own time.
    maker.take(sent, by: 1, earlier: ["title": ("x", 10)])
    let committed = RunEvent.committed(device: "one", [first, last])
    #expect(found([committed], maker.final()).count == 1)
    #expect(found([.read(device: "one", pending), committed], maker.final()) == [])
    var copy = maker.replica(1, [])
    copy.archived = [first.id, insert.id, last.id]
    let copied = RunEvent.copied(device: "two", from: "one", copy)
    #expect(
      found([.read(device: "one", pending), committed, copied], maker.final()) == [])
  }
}

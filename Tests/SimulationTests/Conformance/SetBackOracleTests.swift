import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The findings of oracles after a server was restored from a backup.
@Suite(.hangLimit)
struct SetBackOracleTests {
  private func setBack(_ before: [LocalOperation], keeping count: Int) -> RunEvent {
    .serverWentBack(from: before.map(\.id), to: before.prefix(count).map(\.id))
  }

  @Test("operations that the server lost must return, unless their file is gone too")
  func acknowledged() {
    var maker = HistoryMaker()
    let kept = maker.add(.insert, "a", by: 1, at: 10, ["title": "x"])
    let lost = maker.operation(.insert, "b", at: 11, ["title": "y"])
    let events: [RunEvent] = [
      .committed(device: "one", [kept, lost]), .confirmed(device: "one", [kept.id, lost.id]),
      setBack([kept, lost], keeping: 1),
    ]
    func found(_ events: [RunEvent], _ maker: HistoryMaker) -> Int {
      AcknowledgedOperations.found(AcknowledgedOperations(), events, maker.final()).count
    }
    #expect(found(events, maker) == 1)
    let gone = RunEvent.lostPower(device: "one", survivors: maker.replica(1, []))
    #expect(found(events + [gone], maker) == 0)
    // The file's operations are still to be re-uploaded.
    var survivors = maker.replica(1, [])
    survivors.archived = [lost.id]
    #expect(found(events + [.lostPower(device: "one", survivors: survivors)], maker) == 1)
    maker.take(lost, by: 1)
    #expect(found(events, maker) == 0)
  }

  @Test("a base may be lower than recorded only if it is from before the rollback")
  func bases() {
    var maker = HistoryMaker()
    var first = maker.operation(.insert, "a", at: 10, ["title": "x"])
    first.base = 5
    let told = RunEvent.committed(device: "one", [first])
    maker.take(first, by: 1, base: 2)
    func found(_ events: [RunEvent]) -> Int {
      AcknowledgedOperations.found(AcknowledgedOperations(), events, maker.final()).count
    }
    #expect(found([told]) == 1)
    #expect(found([told, setBack([first], keeping: 0)]) == 0)
    var aware = maker.replica(1, [])
    aware.anchor = Cursor.Anchor(head: 1, operation: first.id)
    #expect(found([setBack([], keeping: 0), .read(device: "one", aware), told]) == 1)
    // The file is reported for the first time after the rollback, and does not know of it.
    #expect(found([setBack([first], keeping: 0), told, .read(device: "one", aware)]) == 0)
    // A response from before came late: the device knew of the lost history.
    let gone = maker.operation(.insert, "b", at: 12)
    var late = aware
    late.anchor = Cursor.Anchor(head: 2, operation: gone.id)
    let back = setBack([first, gone], keeping: 1)
    let reads = [aware, late, aware].map { RunEvent.read(device: "one", $0) }
    #expect(found([reads[1], back, reads[0], told, reads[1], reads[2]]) == 0)
    #expect(found([reads[1], back, reads[0], reads[1], reads[2], told]) == 1)
    // The device's packet was confirmed there; or the cursor was refused.
    var refused = aware
    refused.refusals = 1
    var confirmed = aware
    confirmed.confirmed = late.anchor
    for evidence in [refused, confirmed] {
      let read = RunEvent.read(device: "one", evidence)
      #expect(found([reads[1], back, reads[0], told, read, reads[0]]) == 0)
      #expect(found([reads[1], back, reads[0], read, reads[0], told]) == 1)
    }
  }

  @Test("operations merged again after both rollbacks are known from the file's archive")
  func mergedAnew() {
    var maker = HistoryMaker()
    let insert = maker.operation(.insert, "a", at: 10, ["title": "x"])
    let update = maker.operation(.update, "a", at: 11, ["body": "y"])
    // Sent as one, by the newer operation's name.
    var joined = update
    joined.kind = .insert
    maker.take(joined, by: 1, earlier: ["title": ("x", 10)])
    var kept = maker.replica(1, [])
    kept.archived = [insert.id, update.id]
    func found(_ kept: ReplicaEvidence) -> Int {
      let events: [RunEvent] = [
        .committed(device: "one", [insert, update]),
        .confirmed(device: "one", [insert.id, update.id]),
        .lostPower(device: "one", survivors: kept), setBack([insert, update], keeping: 0),
        .confirmed(device: "one", [update.id]),
        .lostPower(device: "one", survivors: maker.replica(1, [])),
      ]
      return AcknowledgedOperations.found(AcknowledgedOperations(), events, maker.final()).count
    }
    #expect(found(kept) == 0)
    // If the file did not have the insert, no device can have merged it.
    kept.archived = [update.id]
    #expect(found(kept) == 1)
  }

  @Test("after a rollback, either copy may send the copied operations, in its own order")
  func copied() {
    var maker = HistoryMaker()
    let first = maker.operation(.insert, "a", at: 10, ["title": "x"])
    let last = maker.operation(.insert, "b", at: 11, ["title": "y"])
    maker.take(last, by: 1)
    maker.take(first, by: 1)
    var copy = maker.replica(1, [])
    copy.archived = [first.id, last.id]
    func found(_ events: [RunEvent]) -> Int {
      OwnOrder.found(OwnOrder(), events, maker.final()).count
    }
    let told = RunEvent.committed(device: "one", [first, last])
    let copied = RunEvent.copied(device: "two", from: "one", copy)
    let back = setBack([first, last], keeping: 0)
    #expect(found([told]) == 1)
    #expect(found([told, copied]) == 1)
    #expect(found([told, back, copied]) == 0)
  }

  @Test("a beat of a lost history may go back, once")
  func beats() {
    var maker = HistoryMaker()
    let old = maker.operation(.insert, "x", at: 10)
    let new = maker.add(.insert, "y", by: 1, at: 11)
    func read(_ beat: Int64, _ anchor: LocalOperation) -> RunEvent {
      var rows = TableRows(name: "beats", columns: ["n"])
      rows.append("two", [.integer(beat)])
      var evidence = maker.replica(1, [rows])
      evidence.anchor = Cursor.Anchor(head: 1, operation: anchor.id)
      return .read(device: "one", evidence)
    }
    func found(_ events: [RunEvent]) -> Int {
      MonotonicReads.found(MonotonicReads(), events, maker.final()).count
    }
    let back = setBack([old], keeping: 0)
    #expect(found([read(4, old), back, read(2, new), read(3, new)]) == 0)
    #expect(found([read(4, old), back, read(2, new), read(1, new)]) == 1)
    #expect(found([back, read(4, new), read(2, new)]) == 1)
  }

  @Test("a beat in a re-uploaded row may go back until its device has sent its own beat")
  func rescuedBeats() {
    let old = LocalOperation(
      id: OperationID(UniqueID(high: 1, low: 1)), key: RecordKey(table: "notes", record: "x"),
      kind: .insert, columns: [])
    /// - Parameter brings: Whether the device's own later beat is there before the others read it.
    func found(brings: Bool, isSetBack: Bool = true) -> Int {
      var maker = HistoryMaker()
      var newest = maker.add(.insert, "two", by: 1, at: 0, ["n": 4], table: "beats")
      if brings { newest = maker.add(.update, "two", by: 2, at: 12, ["n": 4], table: "beats") }
      let head = SequenceNumber(brings ? 2 : 1)
      func read(_ beat: Int64) -> RunEvent {
        var rows = TableRows(name: "beats", columns: ["n"])
        rows.append("two", [.integer(beat)])
        var evidence = maker.replica(1, [rows])
        evidence.anchor = Cursor.Anchor(head: head, operation: newest.id)
        return .read(device: "one", evidence)
      }
      let events = (isSetBack ? [setBack([old], keeping: 0)] : []) + [read(4), read(2)]
      return MonotonicReads.found(MonotonicReads(), events, maker.final()).count
    }
    #expect(found(brings: false) == 0)
    #expect(found(brings: true) == 1)
    #expect(found(brings: false, isSetBack: false) == 1)
  }

  @Test("during a replacement, a file shows rows of the refused history")
  func replacedFile() {
    var maker = HistoryMaker()
    let old = maker.operation(.insert, "x", at: 10)
    let new = maker.add(.insert, "y", by: 1, at: 11)
    func evidence(_ beat: Int64, isReplacing: Bool = false) -> ReplicaEvidence {
      var rows = TableRows(name: "beats", columns: ["n"])
      rows.append("two", [.integer(beat)])
      var evidence = maker.replica(1, [rows])
      // Within a replacement, the anchor of the list under way.
      evidence.anchor = Cursor.Anchor(head: 1, operation: new.id)
      (evidence.isReplacing, evidence.isRescuing) = (isReplacing, isReplacing)
      return evidence
    }
    func found(_ events: [RunEvent]) -> Int {
      MonotonicReads.found(MonotonicReads(), events, maker.final()).count
    }
    let back = setBack([old], keeping: 0)
    let read = RunEvent.read(device: "one", evidence(2))
    func putBack(_ isReplacing: Bool) -> RunEvent {
      .lostPower(device: "one", survivors: evidence(4, isReplacing: isReplacing))
    }
    #expect(found([back, putBack(true), read]) == 0)
    #expect(found([back, putBack(false), read]) == 1)
    // A list from the start replaces rows of this very history, if it follows on an old cursor.
    #expect(found([putBack(true), read]) == 1)
    // Pulled after the last read before, and seen only when the replacement had begun.
    let late = RunEvent.read(device: "one", evidence(4, isReplacing: true))
    #expect(found([read, back, late, read]) == 0)
    #expect(found([read, back, .read(device: "one", evidence(4)), read]) == 1)
    #expect(found([read, late, read]) == 1)
  }
}

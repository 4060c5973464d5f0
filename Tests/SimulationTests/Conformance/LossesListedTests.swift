import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// Rows that go with their parents have to be among the conflicts of their authors.
@Suite("Losses listed", .hangLimit)
struct LossesListedTests {
  private let twig = RecordKey(table: "twigs", record: "k1/b1/t1")
  private let author = DeviceID(UniqueID(high: 1, low: 1))
  private let other = DeviceID(UniqueID(high: 2, low: 2))

  private func entry(
    _ sequence: SequenceNumber, by device: DeviceID, _ key: RecordKey, _ kind: OperationKind,
    _ columns: [Column] = []
  ) -> HistoryEntry {
    let time = HybridTimestamp(milliseconds: Int64(sequence))
    return HistoryEntry(
      sequence: sequence, id: OperationID(UniqueID(timestamp: time, random: 7)), device: device,
      key: key, kind: kind, time: time, columns: columns)
  }

  /// Judges a run in which a device deletes a twig, after it or another one has cut the trunk.
  private func judge(
    deleter: DeviceID, cutter: DeviceID, isChosen: Bool = false, listed: [ListedLoss] = []
  ) -> [Violation] {
    let history = [
      entry(1, by: author, twig, .insert, [Column("note", "new"), Column("size", .null)]),
      entry(2, by: cutter, RecordKey(table: "trunks", record: "k1"), .delete),
      entry(3, by: deleter, twig, .delete),
    ]
    var replica = ReplicaEvidence(
      device: author, rows: ReplicaRows(), applied: 3, epoch: nil, pending: [], unconfirmed: 0,
      waiting: 0, refused: 0)
    replica.listed = listed
    var oracle = LossesListed()
    if isChosen {
      let delete = LocalOperation(id: history[2].id, key: twig, kind: .delete, columns: [])
      _ = oracle.see(.committed(device: "one", [delete]))
    }
    let server = ServerEvidence(
      head: 3, epoch: Epoch(3), history: history, records: [:], buffered: 0)
    return oracle.judge(FinalEvidence(server: server, replicas: ["one": replica]))
  }

  @Test(
    "a row that a pull deletes has to be listed on its author's device, whichever device deletes it"
  )
  func unlisted() {
    for deleter in [author, other] {
      let found = judge(deleter: deleter, cutter: DeviceID(UniqueID(high: 9, low: 9)))
      #expect(found.count == 1)
      #expect(found.first?.detail.contains("twigs/k1/b1/t1.note") == true)
    }
  }

  @Test("a listed row, and a row that a user deletes with its trunk, are no findings")
  func sound() {
    let loss = ListedLoss(key: twig, column: "note", value: "new", author: author)
    let third = DeviceID(UniqueID(high: 9, low: 9))
    #expect(judge(deleter: other, cutter: third, listed: [loss]).isEmpty)
    #expect(judge(deleter: other, cutter: third, isChosen: true).isEmpty)
    #expect(judge(deleter: author, cutter: author).isEmpty)
  }

  @Test("an identifier names the records above it")
  func ancestors() {
    #expect(
      Workload.ancestors(of: twig) == [
        RecordKey(table: "boughs", record: "k1/b1"), RecordKey(table: "trunks", record: "k1"),
      ])
    #expect(Workload.ancestors(of: RecordKey(table: "vines", record: "v1")).isEmpty)
    #expect(Workload.ancestors(of: RecordKey(table: "nests", record: "n/1")).isEmpty)
  }
}

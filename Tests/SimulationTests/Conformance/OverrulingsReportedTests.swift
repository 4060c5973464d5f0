import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// Overruled values have to be in the quarantine of their authors.
@Suite("Overrulings reported", .hangLimit)
struct OverrulingsReportedTests {
  private let note = RecordKey(table: "notes", record: "n1")
  private let author = DeviceID(UniqueID(high: 1, low: 1))
  private let other = DeviceID(UniqueID(high: 2, low: 2))

  private func entry(
    _ sequence: SequenceNumber, by device: DeviceID, _ kind: OperationKind,
    _ columns: [Column] = [], reason: String? = nil
  ) -> HistoryEntry {
    let time = HybridTimestamp(milliseconds: Int64(sequence))
    var entry = HistoryEntry(
      sequence: sequence, id: OperationID(UniqueID(timestamp: time, random: 7)), device: device,
      key: note, kind: kind, time: time, base: sequence - 1, columns: columns)
    entry.reason = reason
    return entry
  }

  /// Judges a history; the author's file lists these operations.
  private func judge(_ history: [HistoryEntry], listed: [HistoryEntry] = []) -> [Violation] {
    var replica = ReplicaEvidence(
      device: author, rows: ReplicaRows(), applied: 3, epoch: nil, pending: [], unconfirmed: 0,
      waiting: 0, refused: 0)
    replica.overruled = listed.map { OverruledEntry(operation: $0.id, key: $0.key) }
    var oracle = OverrulingsReported()
    let server = ServerEvidence(
      head: 9, epoch: Epoch(3), history: history, records: [:], buffered: 0)
    return oracle.judge(FinalEvidence(server: server, replicas: ["one": replica]))
  }

  @Test("a value, a record and a delete that another device overrules have to be listed")
  func missing() {
    let insert = entry(1, by: author, .insert, [Column("body", "mine")])
    let update = entry(2, by: other, .update, [Column("body", "theirs")], reason: "no")
    let delete = entry(2, by: other, .delete, reason: "no")
    let gone = entry(2, by: author, .delete)
    let again = entry(3, by: other, .insert, [Column("body", "theirs")], reason: "no")
    for history in [[insert, update], [insert, delete], [insert, gone, again]] {
      #expect(judge(history).count == 1)
      #expect(judge(history, listed: [history[history.count - 1]]).isEmpty)
    }
  }

  @Test("equal and own values are not overruled, nor is a value without a reason")
  func sound() {
    let insert = entry(1, by: author, .insert, [Column("body", "mine")])
    for last in [
      entry(2, by: other, .update, [Column("body", "mine")], reason: "no"),
      entry(2, by: author, .update, [Column("body", "x")], reason: "no"),
      entry(2, by: other, .update, [Column("body", "x")]),
    ] {
      #expect(judge([insert, last]).isEmpty)
    }
  }

  @Test("a listed operation without a reason is a finding")
  func invented() {
    let insert = entry(1, by: author, .insert, [Column("body", "mine")])
    let update = entry(2, by: other, .update, [Column("body", "theirs")])
    #expect(judge([insert, update], listed: [update]).count == 1)
  }
}

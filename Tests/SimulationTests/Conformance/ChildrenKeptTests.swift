import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracle of rows never deleted by a user.
@Suite(.hangLimit)
struct ChildrenKeptTests {
  private let device = DeviceID(UniqueID(high: 1, low: 1))
  private let loan = RecordKey(table: "loans", record: "k-1")

  /// Returns the findings of a run with the loan at the end or without it.
  private func found(isThere: Bool, _ events: [RunEvent] = []) -> [String] {
    var oracle = ChildrenKept()
    let insert = LocalOperation(
      id: OperationID(UniqueID(high: 2, low: 2)), key: loan, kind: .insert, columns: [])
    let deleted = LocalOperation(
      id: OperationID(UniqueID(high: 2, low: 3)), key: RecordKey(table: "books", record: "b-1"),
      kind: .insert, columns: [])
    for event in [.committed(device: "one", [insert, deleted])] + events {
      #expect(oracle.see(event).isEmpty)
    }
    let stamp = SequencedStamp(stamp: Stamp(time: .zero, device: device), sequence: 1)
    let state = isThere ? RecordState(inserted: stamp) : RecordState(deleted: stamp)
    let server = ServerEvidence(
      head: 1, epoch: Epoch(1), history: [], records: [loan: state], buffered: 0)
    return oracle.judge(FinalEvidence(server: server, replicas: [:])).map(\.detail)
  }

  @Test("a row that no user deletes is there in the end")
  func judged() {
    #expect(found(isThere: true) == [])
    #expect(found(isThere: false).count == 1)
  }

  @Test("rows of a file that went back, or was copied, are not judged")
  func doubtful() {
    let evidence = ReplicaEvidence(
      device: device, rows: ReplicaRows(), applied: 0, epoch: nil, pending: [], unconfirmed: 0,
      waiting: 0, refused: 0)
    for device in ["one", "two"] {
      let expected = device == "one" ? 0 : 1
      let back = RunEvent.lostPower(device: device, survivors: evidence)
      #expect(found(isThere: false, [back]).count == expected)
      let copied = RunEvent.copied(device: "three", from: device, evidence)
      #expect(found(isThere: false, [copied]).count == expected)
    }
    #expect(found(isThere: false, [.serverWentBack(from: [], to: [])]) == [])
  }
}

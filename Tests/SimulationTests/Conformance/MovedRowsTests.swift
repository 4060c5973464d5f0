import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracle of rows moved between spaces.
@Suite(.hangLimit)
struct MovedRowsTests {
  private let device = DeviceID(UniqueID(high: 1, low: 1))
  private let token = RecordKey(table: "tasks", record: "k-1")

  private func insert(_ list: String, worth: Int64 = 3) -> LocalOperation {
    LocalOperation(
      id: OperationID(UniqueID(high: 2, low: 2)), key: token, kind: .insert,
      columns: [Column("list", .text(list)), Column("worth", .integer(worth))])
  }

  /// A space whose server has the token, with a value in the column of spaces; `nil`: it has none.
  private func server(_ list: String?, worth: Int64 = 3) -> ServerEvidence {
    var state = RecordState()
    if let list {
      let stamp = SequencedStamp(stamp: Stamp(time: .zero, device: device), sequence: 1)
      state.inserted = stamp
      state.columns = [("list", Value.text(list)), ("worth", .integer(worth))].map {
        ColumnState(name: $0.0, value: $0.1, stamp: stamp.stamp, sequence: 1)
      }
    }
    return ServerEvidence(
      head: 1, epoch: Epoch(1), history: [], records: [token: state], buffered: 0)
  }

  private func found(
    _ home: ServerEvidence, _ shared: ServerEvidence, _ events: [RunEvent] = []
  ) throws -> [String] {
    var oracle = MovedRows()
    oracle.see(.committed(device: "one", [insert("home")]))
    for event in events { oracle.see(event) }
    let names = [try #require(SpaceName("home")), try #require(SpaceName("shared"))]
    return oracle.judge([names[0]: home, names[1]: shared]).map(\.detail)
  }

  @Test("a token is in exactly one space, which its column names, with its worth")
  func judged() throws {
    #expect(try found(server("home"), server(nil)) == [])
    #expect(try found(server(nil), server("shared")) == [])
    #expect(try found(server(nil), server(nil)).count == 1)
    #expect(try found(server("home"), server("shared")).count == 1)
    #expect(try found(server(nil), server("home")).count == 1)
    #expect(try found(server("home", worth: 4), server(nil)).count == 1)
  }

  @Test("a token of a file that went back is not judged")
  func doubtful() throws {
    let evidence = ReplicaEvidence(
      device: device, rows: ReplicaRows(), applied: 0, epoch: nil, pending: [], unconfirmed: 0,
      waiting: 0, refused: 0)
    let back = RunEvent.lostPower(device: "one", survivors: evidence)
    #expect(try found(server(nil), server(nil), [back]) == [])
    let other = RunEvent.lostPower(device: "two", survivors: evidence)
    #expect(try found(server(nil), server(nil), [other]).count == 1)
  }
}

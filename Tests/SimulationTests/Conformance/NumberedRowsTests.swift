import FerryConformance
import FerryProtocol
import Testing

/// The oracle's rule about rows with numbers of a company's sequences.
struct NumberedRowsTests {
  private static let order = RecordKey(table: "orders", record: "order-a")
  private static let other = RecordKey(table: "orders", record: "order-b")
  private static let line = RecordKey(table: "order_lines", record: "line-a")

  private static func state(_ values: [(Name, Value)]) -> RecordState {
    let insert = SequencedStamp(
      stamp: Stamp(time: .zero, device: DeviceID(UniqueID(high: 1, low: 1))), sequence: 1)
    return RecordState(
      inserted: insert,
      columns: values.map {
        ColumnState(name: $0.0, value: $0.1, stamp: insert.stamp, sequence: 1)
      })
  }

  /// Returns the findings on two orders, the first of them with a line.
  private func found(
    _ change: (inout MirrorSidesEvidence) -> Void = { _ in }
  ) -> [String] {
    var evidence = MirrorSidesEvidence()
    evidence.hasOrders = true
    evidence.tables = [
      RecordKey(table: "orders", record: "7"): ["token": "o-a", "title": "one"],
      RecordKey(table: "orders", record: "8"): ["token": "o-b", "title": "two"],
      RecordKey(table: "order_lines", record: "7"): [
        "token": "l-a", "order_id": "7", "note": "tea",
      ],
    ]
    change(&evidence)
    evidence.replica = evidence.tables
    let records = [
      Self.order: Self.state([("token", "o-a"), ("title", "one")]),
      Self.other: Self.state([("token", "o-b"), ("title", "two")]),
      Self.line: Self.state([
        ("token", "l-a"), ("order_id", .text("order-a")), ("note", "tea"),
      ]),
    ]
    let server = ServerEvidence(
      head: 1, epoch: Epoch(1), history: [], records: records, buffered: 0)
    return MirrorSides.judge("m", evidence, server, serverWentBack: false).map(\.detail)
  }

  @Test("rows are the same by their tokens, whatever their numbers are")
  func same() { #expect(found() == []) }

  @Test("a row that became another one, and a line of another order, are found")
  func merged() {
    let second = RecordKey(table: "orders", record: "8")
    #expect(found { $0.tables[second] = nil }.count == 1)
    #expect(found { $0.tables[second]?["title"] = "one" }.count == 1)
    #expect(found { $0.tables[second]?["token"] = "o-a" }.count >= 2)
    let line = RecordKey(table: "order_lines", record: "7")
    #expect(found { $0.tables[line]?["order_id"] = "8" }.count == 1)
  }

  @Test("a program's row has to reach the space")
  func lost() {
    #expect(found { $0.tokens = ["o-a"] } == [])
    #expect(found { $0.tokens = ["o-x"] }.count == 1)
    #expect(
      found {
        $0.tokens = ["o-x"]
        $0.forgets = true
      } == [])
  }
}

import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracle of counters.
@Suite(.hangLimit)
struct CounterSumsTests {
  private var maker = HistoryMaker()
  private var told: [RunEvent] = []

  init() {
    let insert = maker.operation(.insert, "a", at: 10, ["votes": 5], table: "tallies")
    var more = maker.operation(.update, "a", at: 20, ["votes": 3], table: "tallies")
    var less = maker.operation(.update, "a", at: 15, ["votes": -10], table: "tallies")
    more.increments = ["votes"]
    less.increments = ["votes"]
    maker.take(insert, by: 1)
    maker.take(more, by: 2, base: 1)
    maker.take(less, by: 1, base: 1)
    told = [.committed(device: "one", [insert, less]), .committed(device: "two", [more])]
  }

  private func found(_ change: (inout FinalEvidence) -> Void = { _ in }) -> [String] {
    var final = maker.final(["one": maker.replica(1)])
    change(&final)
    return CounterSums.found(CounterSums(), told, final)
  }

  @Test("counters that are the sums of their increments pass, with all oracles")
  func right() {
    #expect(maker.server.records.values.first?.columns.first?.value == -2)
    #expect(found() == [])
    var bench = OracleBench()
    let replica = maker.replica(1)
    let events = told + [.read(device: "one", replica)]
    #expect(events.flatMap { bench.see($0) } == [])
    #expect(bench.judge(maker.final(["one": replica])) == [])
  }

  @Test("the oracle finds a wrong sum on a server and on a replica")
  func sums() {
    let key = RecordKey(table: "tallies", record: "a")
    #expect(
      found { $0.server.records[key]?.columns[0].value = 3 }
        == ["the server's a is integer(3), but integer(-2) by the history"])
    #expect(found { $0.server.records[key] = nil }.count == 1)
    #expect(
      found { $0.replicas["one"]?.rows = ReplicaRows(["tallies": ["a": ["votes": 8]]]) }
        == ["one shows a as integer(8), but integer(-2) by the history"])
    #expect(found { $0.replicas["one"]?.rows = ReplicaRows(["tallies": [:]]) }.count == 1)
  }

  @Test("an increment whose record lost its insert is on no replica")
  func lostInsert() {
    var maker = HistoryMaker()
    var less = maker.operation(.update, "a", at: 15, ["votes": -2], table: "tallies")
    less.increments = ["votes"]
    maker.take(less, by: 1)
    let final = maker.final(["one": maker.replica(1)])
    let key = RecordKey(table: "tallies", record: "a")
    #expect(final.server.records[key]?.isAlive == false)
    let events = [RunEvent.committed(device: "one", [less])]
    #expect(CounterSums.found(CounterSums(), events, final) == [])
  }

  @Test("the oracle finds an increment that became a value, changed, or was added twice")
  func entries() {
    #expect(found { $0.server.history[1].increments = [] }.count == 1)
    // The sum is another, too.
    #expect(found { $0.server.history[2].columns = [Column("votes", -9)] }.count == 3)
    #expect(found { $0.server.history.append($0.server.history[1]) }.count == 3)
  }

  @Test("a row that is re-uploaded to a server that lost it adds nothing")
  func reuploaded() {
    func found(_ votes: Value) -> [String] {
      var maker = HistoryMaker()
      var insert = maker.operation(.insert, "a", at: 1, ["votes": votes], table: "tallies")
      insert.id = OperationID(
        UniqueID(timestamp: HybridTimestamp(milliseconds: 1), random: 7))
      maker.take(insert, by: 1)
      return CounterSums.found(CounterSums(), [], maker.final())
    }
    #expect(found(0) == [])
    #expect(found(3).count == 1)
  }
}

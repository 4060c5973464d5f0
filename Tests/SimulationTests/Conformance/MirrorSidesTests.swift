import FerryConformance
import FerryProtocol
import Testing

/// The oracle of mirrors.
struct MirrorSidesTests {
  private static let note = RecordKey(table: "notes", record: "n1")
  private static let device = DeviceID(UniqueID(high: 1, low: 1))
  private static let other = RecordKey(table: "notes", record: "n2")

  /// Returns the findings on two sides with the same row.
  private func found(
    serverWentBack: Bool = false, history: [RecordKey] = [],
    _ change: (inout MirrorSidesEvidence) -> Void = { _ in }
  ) -> [String] {
    var evidence = MirrorSidesEvidence()
    evidence.tables = [Self.note: ["title": "a", "stars": nil]]
    evidence.replica = evidence.tables
    change(&evidence)
    let device = DeviceID(UniqueID(high: 1, low: 1))
    let entries = history.map {
      HistoryEntry(
        sequence: 1, id: OperationID(UniqueID(high: 2, low: 2)), device: device, key: $0,
        kind: .insert, time: .zero)
    }
    let server = ServerEvidence(
      head: 1, epoch: Epoch(1), history: entries, records: [:], buffered: 0)
    return MirrorSides.judge("m", evidence, server, serverWentBack: serverWentBack)
      .map(\.detail)
  }

  @Test("both sides have the same rows")
  func sides() {
    #expect(found() == [])
    #expect(found { $0.tables[Self.note]?["title"] = "b" }.count == 1)
    #expect(found { $0.tables[Self.note]?["stars"] = "0" }.count == 1)
    #expect(found { $0.tables = [:] }.count == 1)
    #expect(found { $0.replica = [:] }.count == 1)
  }

  @Test("a row is missing only if PostgreSQL cannot hold a row, and the mirror lists it")
  func deferred() {
    func deferred(_ isFit: Bool) -> [String] {
      found {
        $0.tables = [:]
        $0.deferred = [Self.note]
        if !isFit { $0.unfit = [Self.note] }
      }
    }
    #expect(deferred(false) == [])
    #expect(deferred(true).count == 1)
  }

  @Test("no row refused by a company is only on devices, and each answer to one has a reason")
  func rules() {
    let insert = SequencedStamp(stamp: Stamp(time: .zero, device: Self.device), sequence: 1)
    let refused = RecordState(
      inserted: insert,
      columns: [
        ColumnState(name: "stars", value: .integer(5), stamp: insert.stamp, sequence: 1)
      ])
    func found(
      records: [RecordKey: RecordState] = [:], reason: String?,
      _ change: (inout MirrorSidesEvidence) -> Void = { _ in }
    ) -> Int {
      var evidence = MirrorSidesEvidence()
      (evidence.hasRules, evidence.device) = (true, Self.device)
      change(&evidence)
      var delete = HistoryEntry(
        sequence: 2, id: OperationID(UniqueID(high: 2, low: 2)), device: Self.device,
        key: Self.other, kind: .delete, time: .zero)
      delete.reason = reason
      let server = ServerEvidence(
        head: 2, epoch: Epoch(1), history: [delete], records: records, buffered: 0)
      return MirrorSides.judge("m", evidence, server, serverWentBack: false).count
    }
    #expect(found(reason: "a rule") == 0)
    #expect(found(reason: nil) == 1)
    #expect(found(reason: nil) { $0.removed = [Self.other] } == 0)
    #expect(found(reason: nil) { $0.hasRules = false } == 0)
    #expect(found(records: [Self.note: refused], reason: "a rule") == 1)
    #expect(found(records: [Self.note: refused], reason: "a rule") { $0.hasRules = false } == 0)
  }

  @Test("no committed transfer of a program is undone")
  func undone() {
    let account = RecordKey(table: "tallies", record: "account-m-0")
    func found(_ votes: String?, back: Bool = false) -> Int {
      self.found(serverWentBack: back, history: [account]) {
        $0.balances = [account: 40]
        $0.tables[account] = ["votes": votes]
        $0.replica[account] = ["votes": votes]
      }.count
    }
    #expect(found("40") == 0)
    #expect(found("100") == 1)
    #expect(found(nil) == 1)
    #expect(found("100", back: true) == 0)
  }

  @Test("the space has had each record that a program made")
  func made() {
    func lost(
      _ history: [RecordKey] = [], back: Bool = false,
      _ change: (inout MirrorSidesEvidence) -> Void = { _ in }
    ) -> Int {
      found(serverWentBack: back, history: history) {
        $0.made = [Self.other]
        change(&$0)
      }.count
    }
    #expect(lost() == 1)
    #expect(lost([Self.other]) == 0)
    #expect(lost(back: true) == 0)
    #expect(lost { $0.rejected = [Self.other] } == 0)
    #expect(lost { $0.taken = [Self.other] } == 1)
    #expect(
      lost {
        $0.taken = [Self.other]
        $0.forgets = true
      } == 0)
  }
}

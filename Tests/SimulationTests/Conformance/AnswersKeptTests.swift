import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracle of answers to conflicts and of open questions.
@Suite(.hangLimit)
struct AnswersKeptTests {
  private static let key = RecordKey(table: "notes", record: "a")

  private func found(
    _ column: Name?, keepsLost: Bool, isEdit: Bool = true, before: [Column]?, after: [Column]?
  ) -> Int {
    let answer = AnswersKept.Answer(
      key: Self.key, column: column, lost: "mine", keepsLost: keepsLost, isEdit: isEdit,
      before: before, after: after)
    return AnswersKept.judge(device: "one", answer).count
  }

  @Test("the oracle finds an answer without its effect, and a record that comes back for nobody")
  func answers() {
    let (old, mine) = ([Column("title", "old")], [Column("title", "mine")])
    #expect(found("title", keepsLost: true, before: old, after: mine) == 0)
    #expect(found("title", keepsLost: true, before: nil, after: mine) == 0)
    #expect(found("title", keepsLost: true, before: old, after: old) == 1)
    #expect(found("title", keepsLost: true, before: nil, after: nil) == 1)
    #expect(found(nil, keepsLost: true, before: nil, after: nil) == 1)
    #expect(found(nil, keepsLost: true, isEdit: false, before: mine, after: nil) == 0)
    #expect(found("title", keepsLost: false, before: old, after: old) == 0)
    #expect(found("title", keepsLost: false, before: nil, after: old) == 1)
  }

  @Test("the oracle finds an answer that fails for a column without a value, and no other failure")
  func failures() {
    let answer = AnswersKept.Answer(
      key: Self.key, column: "title", lost: "mine", keepsLost: true, isEdit: true, before: nil)
    func found(lacksValue: Bool) -> Int {
      AnswersKept.judge(device: "one", answer, failure: "an error", lacksValue: lacksValue).count
    }
    #expect(found(lacksValue: true) == 1)
    #expect(found(lacksValue: false) == 0)
  }

  @Test("the oracle finds a row that went with its parent and does not come back whole")
  func listed() {
    func answer(_ after: [Column]?) -> AnswersKept.Answer {
      var answer = AnswersKept.Answer(
        key: Self.key, column: nil, lost: .null, keepsLost: true, isEdit: false, before: nil,
        after: after)
      answer.listed = ["size"]
      return answer
    }
    func found(_ after: [Column]?) -> Int {
      AnswersKept.judge(device: "one", answer(after)).count
    }
    #expect(found([Column("size", 1), Column("title", .null)]) == 0)
    #expect(found([Column("size", .null)]) == 1)
    #expect(found(nil) == 1)
  }

  @Test("the oracle finds questions that have no answer, unless the device's file was copied")
  func questions() {
    var maker = HistoryMaker()
    maker.add(.insert, "a", by: 1, at: 10, ["title": "first"])
    maker.add(.insert, "b", by: 1, at: 11, ["title": "first"])
    maker.add(.update, "a", by: 2, at: 30, ["title": "later"], base: 2)
    maker.add(.delete, "b", by: 1, at: 40, base: 3)
    func found(_ record: String, _ time: UInt64, _ events: [RunEvent] = []) -> Int {
      Self.found(record, "title", lostAt: time, in: maker, events)
    }
    #expect(found("a", 30) == 0)
    #expect(found("a", 20) == 1, "the device has written the column since")
    #expect(found("b", 50) == 1, "the record is gone")
    let survivors = maker.replica(2, [])
    #expect(found("b", 50, [.lostPower(device: "two", survivors: survivors)]) == 0)
    #expect(found("b", 50, [.copied(device: "three", from: "two", survivors)]) == 0)
    #expect(found("b", 50, [.lostPower(device: "three", survivors: survivors)]) == 1)
  }

  @Test("of a merged operation, the oracle compares a question with the time of its column")
  func merged() {
    var maker = HistoryMaker()
    maker.add(.insert, "a", by: 1, at: 10, ["title": "first", "stars": 1])
    let sent = maker.operation(.update, "a", at: 30, ["stars": 2])
    maker.take(sent, by: 2, earlier: ["title": ("lost", 20)])
    #expect(Self.found("a", "title", lostAt: 20, in: maker) == 0, "it is the losing write")
    #expect(Self.found("a", "title", lostAt: 15, in: maker) == 1)
    #expect(Self.found("a", "stars", lostAt: 20, in: maker) == 1)
    #expect(Self.found("a", "body", lostAt: 20, in: maker) == 0, "it writes no such column")
    #expect(Self.found("a", nil, lostAt: 20, in: maker) == 1, "any write is an answer")
  }

  /// Judges a question of the second device about a write of it.
  private static func found(
    _ record: String, _ column: Name?, lostAt time: UInt64, in maker: HistoryMaker,
    _ events: [RunEvent] = []
  ) -> Int {
    var replica = maker.replica(2, [])
    let loser = Stamp(time: HistoryMaker.time(time), device: HistoryMaker.device(2))
    replica.questions = [
      OpenQuestion(
        key: RecordKey(table: "notes", record: Name(record)), column: column, loser: loser)
    ]
    return AnswersKept.found(AnswersKept(), events, maker.final(["two": replica])).count
  }
}

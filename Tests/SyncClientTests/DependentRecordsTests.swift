import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Records that lack a parent because others are left out", .hangLimit)
struct DependentRecordsTests {
  struct Case: Sendable {
    let references: [(child: Int, parent: Int)]
    let leftOut: Set<Int>
    let lacking: [Int: Int]
  }

  static let cases = [
    Case(references: [], leftOut: [1], lacking: [:]),
    Case(references: [(2, 1)], leftOut: [], lacking: [:]),
    Case(references: [(2, 1), (3, 2)], leftOut: [1], lacking: [2: 1, 3: 2]),
    Case(references: [(3, 2), (2, 1)], leftOut: [2], lacking: [3: 2]),
    Case(references: [(1, 1), (2, 1)], leftOut: [1], lacking: [2: 1]),
    Case(references: [(1, 2), (2, 1), (3, 1)], leftOut: [1], lacking: [2: 1, 3: 1]),
    Case(references: [(2, 1), (4, 3)], leftOut: [1, 3], lacking: [2: 1, 4: 3]),
    Case(references: [(2, 1), (3, 2), (2, 3)], leftOut: [1, 2], lacking: [3: 2]),
  ]

  @Test("all that need a record are found, over any number of steps", arguments: cases)
  func finds(test: Case) {
    var records = DependentRecords(references: test.references)
    #expect(records.lacking(test.leftOut) == test.lacking)
  }

  @Test("each reference is followed once, in a chain of any order", arguments: [true, false])
  func linear(isReversed: Bool) {
    let chain = (1..<10_000).map { (child: $0, parent: $0 - 1) }
    var records = DependentRecords(references: isReversed ? chain.reversed() : chain)
    #expect(records.lacking([0]).count == 9_999)
    #expect(records.visits == 9_999)
    #expect(records.references(from: [5_000]).count == 4_999)
  }
}

@Suite("Events for which deferred changes wait", .hangLimit)
struct DeferralTests {
  /// SQLite's extended codes (https://sqlite.org/rescode.html).
  static let codes: [(Int32, Deferral)] = [
    (275, .definition), (1_299, .definition), (3_091, .definition), (18, .definition),
    (20, .definition), (2_067, .table), (1_555, .table), (2_579, .table), (787, .rows),
    (1_811, .unseen), (19, .unseen), (1, .unseen),
  ]

  @Test("the kind of an error decides", arguments: codes)
  func errors(code: Int32, deferral: Deferral) {
    let error = SQLiteError(code: code, message: "")
    #expect(Deferral(error, isShared: false) == deferral)
    #expect(Deferral(error, isShared: true) == (deferral == .definition ? .definition : .unseen))
  }

  @Test("only its own event ends a wait, apart from a change of the schema")
  func events() {
    let (key, other) = (RecordKey(table: "p", record: "a"), RecordKey(table: "p", record: "b"))
    let events: [Deferral.Event] = [
      .arrival(key), .arrival(other), .write("t"), .write("u"), .definition,
    ]
    func ends(_ deferral: Deferral) -> [Bool] { events.map { deferral.endsAfter($0, of: "t") } }
    #expect(ends(.open) == [true, true, true, true, true])
    #expect(ends(.parent(key)) == [true, false, false, false, true])
    #expect(ends(.definition) == [false, false, false, false, true])
    #expect(ends(.table) == [false, false, true, false, true])
    #expect(ends(.rows) == [false, false, true, true, true])
    #expect(ends(.unseen) == [false, false, false, false, true])
  }
}

import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Answers to conflicts, and changes that answer questions (SPEC.md §6, §15): an answer in, the
/// operation out.
@Suite("Decisions about conflicts", .hangLimit)
struct ConflictDecisionTests {
  private static let (own, other) = (device(1), device(2))

  private static func device(_ number: UInt64) -> DeviceID {
    DeviceID(UniqueID(high: number, low: number))
  }

  private static func stamp(_ time: Int64, _ device: DeviceID) -> Stamp {
    Stamp(time: HybridTimestamp(milliseconds: time), device: device)
  }

  /// A conflict lost by this device at time 1 against another one at time 2.
  private static func conflict(
    _ column: Name?, lost: Value = .null, by loser: DeviceID = own
  ) -> Conflict {
    Conflict(
      column: column, lost: lost, loser: stamp(1, loser), winner: stamp(2, other),
      isQuestion: true)
  }

  private static func kept(_ conflict: Conflict, isLosersOwn: Bool = true) -> KeptConflict {
    KeptConflict(
      number: 1, noticedAt: 0, operation: OperationID(UniqueID(high: 1, low: 1)),
      key: RecordKey(table: "notes", record: "a"), conflict: conflict, isLosersOwn: isLosersOwn,
      isWinnersOwn: !isLosersOwn, resolvedAt: nil)
  }

  private static func decision(
    _ answer: ConflictAnswer, _ conflict: Conflict, isLosersOwn: Bool = true,
    current: Value? = .null, lost: [Conflict] = [], exists: Bool = true,
    former: [Column]? = nil, isSum: Bool = false
  ) -> ConflictDecision {
    ConflictDecision(
      answer, to: kept(conflict, isLosersOwn: isLosersOwn),
      ConflictDecision.Facts(
        exists: exists, current: current, lost: lost,
        former: former.map { FormerRow(columns: $0, deleted: conflict.winner) },
        isSum: isSum))
  }

  @Test("an answer with values has one for the conflict's column")
  func otherColumn() {
    let title = Self.kept(Self.conflict("title", lost: .text("lost")))
    let (stars, named) = (Column("stars", .integer(1)), Column("title", .text("chosen")))
    #expect(ConflictDecision.lacking(.set([stars]), of: title) == "title")
    #expect(ConflictDecision.lacking(.set([stars, named]), of: title) == nil)
    #expect(ConflictDecision.lacking(.keepLocal, of: title) == nil)
    #expect(ConflictDecision.lacking(.set([stars]), of: Self.kept(Self.conflict(nil))) == nil)
  }

  @Test("the local value is the lost one if this device lost, and else the present one")
  func keepLocal() {
    let title = Self.conflict("title", lost: .text("lost"))
    for (answer, isLosersOwn, value) in [
      (ConflictAnswer.keepLocal, true, "lost"), (.keepLocal, false, "present"),
      (.keepRemote, true, "present"), (.keepRemote, false, "lost"),
    ] {
      #expect(
        Self.decision(answer, title, isLosersOwn: isLosersOwn, current: .text("present"))
          == .write([Column("title", .text(value))]))
    }
  }

  @Test("other values are written, whatever the conflict is about")
  func set() {
    let columns = [Column("title", .text("new"))]
    #expect(Self.decision(.set(columns), Self.conflict("title")) == .write(columns))
    #expect(Self.decision(.set(columns), Self.conflict(nil)) == .write(columns))
  }

  @Test("an edit that lost against a delete is repeated with the values that it lost")
  func existence() {
    let lost = [
      Self.conflict("title", lost: .text("mine")), Self.conflict("stars", lost: .integer(1)),
      Self.conflict("body", lost: .text("another device's"), by: Self.other),
    ]
    #expect(
      Self.decision(.keepLocal, Self.conflict(nil), lost: lost)
        == .write([Column("title", .text("mine")), Column("stars", .integer(1))]))
    #expect(Self.decision(.keepRemote, Self.conflict(nil), lost: lost) == .leave)
  }

  private static let row = [
    Column("title", .text("mine")), Column("body", .text("kept")), Column("stars", .integer(9)),
  ]

  @Test("a record that is gone comes back whole, with the chosen value in its row")
  func whole() {
    let title = Self.conflict("title", lost: .text("lost"))
    var expected = Self.row
    #expect(
      Self.decision(.keepLocal, Self.conflict(nil), exists: false, former: Self.row)
        == .restore(expected))
    expected[0] = Column("title", .text("lost"))
    #expect(
      Self.decision(.keepLocal, title, current: nil, exists: false, former: Self.row)
        == .restore(expected))
    expected[0] = Column("title", .text("new"))
    #expect(
      Self.decision(.set([expected[0]]), title, current: nil, exists: false, former: Self.row)
        == .restore(expected))
    // A sum's operation has only the added amount; the row has the sum.
    let stars = Self.conflict("stars", lost: .integer(2))
    #expect(
      Self.decision(
        .keepLocal, stars, current: nil, exists: false, former: Self.row, isSum: true)
        == .restore(Self.row))
  }

  @Test("without its former row, a record comes back with all values that were lost together")
  func together() {
    let lost = [
      Self.conflict("title", lost: .text("mine")), Self.conflict("stars", lost: .integer(1)),
    ]
    for conflict in [Self.conflict(nil), lost[0]] {
      #expect(
        Self.decision(.keepLocal, conflict, current: nil, lost: lost, exists: false)
          == .restore([Column("title", .text("mine")), Column("stars", .integer(1))]))
    }
  }

  @Test("the winner's side never brings a record back, and a losing delete has its effect already")
  func staysDeleted() {
    for column in ["title", nil] as [Name?] {
      #expect(
        Self.decision(
          .keepRemote, Self.conflict(column), current: nil, exists: false, former: Self.row)
          == .leave)
    }
    #expect(Self.decision(.keepLocal, Self.conflict(nil), exists: false) == .leave)
    // The table or the column does not exist here.
    #expect(Self.decision(.keepRemote, Self.conflict("title"), current: nil) == .leave)
  }

  @Test("a later own write answers a question, and an earlier one or one elsewhere does not")
  func answeredHere() {
    func answers(
      _ kind: OperationKind, _ columns: [Name], number: UInt64, to column: Name?,
      record: Name = "a"
    ) -> Bool {
      // The deciding operation has the number 1. Times do not count: the server may have changed them.
      let operation = SyncOperation(
        id: OperationID(UniqueID(high: number, low: number)),
        key: RecordKey(table: "notes", record: record), kind: kind, time: .zero,
        columns: columns.map { Column($0, .null) })
      return ConflictDecision.isAnswered(Self.kept(Self.conflict(column)), by: operation)
    }
    for column in ["title", nil] as [Name?] {
      #expect(answers(.delete, [], number: 2, to: column))
      #expect(answers(.update, ["title"], number: 2, to: column))
      #expect(answers(.insert, ["title", "body"], number: 2, to: column))
      #expect(!answers(.update, ["title"], number: 1, to: column), "it is the write that lost")
      #expect(!answers(.delete, [], number: 2, to: column, record: "b"))
    }
    #expect(!answers(.update, ["body"], number: 2, to: "title"))
    #expect(answers(.update, ["body"], number: 2, to: nil))
  }

  @Test("of a record that waits for a unique value, only the user can choose another value")
  func uniqueValue() {
    var waiting = Self.kept(Self.conflict("code", lost: .text("c"), by: Self.other))
    (waiting.isLosersOwn, waiting.holder) = (false, "b")
    let facts = ConflictDecision.Facts(exists: false)
    let columns = [Column("code", .text("d"))]
    #expect(ConflictDecision(.set(columns), to: waiting, facts) == .adopt(columns))
    #expect(ConflictDecision(.keepLocal, to: waiting, facts) == .leave)
    #expect(ConflictDecision(.keepRemote, to: waiting, facts) == .needsValue)
  }

  @Test("a delete that lost is repeated")
  func deletion() {
    #expect(Self.decision(.keepLocal, Self.conflict(nil)) == .delete)
    #expect(Self.decision(.keepRemote, Self.conflict(nil)) == .leave)
    #expect(Self.decision(.keepRemote, Self.conflict(nil), isLosersOwn: false) == .delete)
  }

  private static let names = OwnNames(device: own, former: [])

  private static func end(
    _ column: Name?, by state: RecordState
  ) -> ConflictDecision.QuestionEnd? {
    ConflictDecision.end(of: conflict(column), by: state, own: names)
  }

  @Test("an own later write to the column answers a question about it, and the winner's does not")
  func answered() {
    func state(_ column: Name, at time: Int64, by device: DeviceID) -> RecordState {
      RecordState(
        inserted: SequencedStamp(stamp: Self.stamp(0, Self.other), sequence: 1),
        columns: [
          ColumnState(name: column, value: .null, stamp: Self.stamp(time, device), sequence: 2)
        ])
    }
    #expect(Self.end("title", by: state("title", at: 3, by: Self.own)) == .answered)
    #expect(Self.end("title", by: state("title", at: 1, by: Self.own)) == nil)
    #expect(Self.end("body", by: state("title", at: 3, by: Self.own)) == nil)
    #expect(Self.end(nil, by: state("title", at: 3, by: Self.own)) == nil)
    // The winner does not know the losing value. A third device may have been asked, too.
    #expect(Self.end("title", by: state("title", at: 3, by: Self.other)) == nil)
    #expect(Self.end("title", by: state("title", at: 3, by: Self.device(3))) == .listed)
    #expect(Self.end("title", by: state("title", at: 1, by: Self.device(3))) == nil)
  }

  @Test(
    "a later delete ends every question about its record, and another device's leaves it listed")
  func answeredByLife() {
    func deleted(at time: Int64, by device: DeviceID) -> RecordState {
      RecordState(deleted: SequencedStamp(stamp: Self.stamp(time, device), sequence: 2))
    }
    func inserted(at time: Int64, by device: DeviceID) -> RecordState {
      RecordState(inserted: SequencedStamp(stamp: Self.stamp(time, device), sequence: 2))
    }
    for column in ["title", nil] as [Name?] {
      #expect(Self.end(column, by: deleted(at: 3, by: Self.own)) == .answered)
      #expect(Self.end(column, by: deleted(at: 3, by: Self.other)) == .listed)
    }
    #expect(Self.end(nil, by: deleted(at: 1, by: Self.other)) == nil)
    // An older delete ends the record, too, and with it all questions about columns.
    #expect(Self.end("title", by: deleted(at: 1, by: Self.other)) == .listed)
    #expect(Self.end(nil, by: inserted(at: 3, by: Self.own)) == .answered)
    #expect(Self.end(nil, by: inserted(at: 3, by: Self.other)) == nil)
    #expect(Self.end(nil, by: inserted(at: 3, by: Self.device(3))) == .listed)
    #expect(Self.end("title", by: inserted(at: 3, by: Self.own)) == nil)
  }
}

/// Undone operations: the operation and the present row in, the decision out.
@Suite("Decisions about undoing", .hangLimit)
struct UndoDecisionTests {
  private static let columns = [Column("title", .text("new")), Column("stars", .integer(3))]

  private static func own(
    _ kind: OperationKind, increments: Set<Name> = [], former: [Column] = []
  ) -> OwnOperation {
    let operation = SyncOperation(
      id: OperationID(UniqueID(high: 1, low: 1)), key: RecordKey(table: "notes", record: "a"),
      kind: kind, time: .zero, columns: columns, increments: increments)
    return OwnOperation(operation: operation, former: former, isConfirmed: false)
  }

  @Test("an insert is undone while the row has its values")
  func insert() {
    #expect(UndoDecision(Self.own(.insert), on: Self.columns) == .delete)
    #expect(UndoDecision(Self.own(.insert), on: [Self.columns[0]]) == .delete)
    let edited = [Self.columns[0], Column("stars", .integer(4))]
    #expect(UndoDecision(Self.own(.insert), on: edited) == .replaced)
    #expect(UndoDecision(Self.own(.insert), on: nil) == .gone)
  }

  @Test("a delete is undone while there is no row")
  func delete() {
    #expect(UndoDecision(Self.own(.delete), on: nil) == .restore(Self.columns))
    #expect(UndoDecision(Self.own(.delete), on: []) == .replaced)
  }

  @Test("an undo removes an operation that is never sent, if it concerns the record's own row only")
  func removal() {
    typealias Place = UndoDecision.Place
    let all: [UndoDecision] = [
      .restore(Self.columns), .delete, .set(Self.columns), .replaced, .gone, .batch,
    ]
    for (place, staying) in [
      (Place(), []), (Place(isAccepted: true), all), (Place(isSent: true), all),
      (Place(hasLater: true), all), (Place(concernsOthers: true), [all[1]]),
      (Place(hasFollowers: true), [all[2]]), (Place(lacksParents: true), [all[0], all[2]]),
    ] as [(Place, [UndoDecision])] {
      #expect(all.filter { !$0.removesOperation(at: place) } == staying, "\(place)")
    }
    #expect(all.map { $0.written != nil } == [true, false, true, false, false, false])
  }

  @Test("an update is undone in the columns that still have its values")
  func update() {
    let former = [Column("title", .text("old")), Column("stars", .null)]
    let own = Self.own(.update, former: former)
    #expect(UndoDecision(own, on: Self.columns) == .set(former))
    let edited = [Column("title", .text("newer")), Column("stars", .integer(3))]
    #expect(UndoDecision(own, on: edited) == .set([former[1]]))
    #expect(UndoDecision(own, on: [Column("title", .text("newer"))]) == .replaced)
    #expect(UndoDecision(own, on: nil) == .gone)
  }

  @Test("an increment is subtracted from the present sum")
  func increment() {
    let own = Self.own(.update, increments: ["stars"])
    let row = [Column("title", .text("newer")), Column("stars", .integer(10))]
    #expect(UndoDecision(own, on: row) == .set([Column("stars", .integer(7))]))
    #expect(UndoDecision(own, on: [Column("stars", .text("ten"))]) == .replaced)
  }

  @Test("a batch has no former values")
  func batch() {
    #expect(UndoDecision(Self.own(.batch), on: nil) == .batch)
  }
}

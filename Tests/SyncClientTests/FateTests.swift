import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The decisions about pulled changes (SPEC.md §5, §23, §28): facts in, steps out. Each row of a
/// table is one branch.
@Suite("The fate of a pulled change", .hangLimit)
struct FateTests {
  private static let stamp = Stamp(
    time: HybridTimestamp(milliseconds: 5), device: DeviceID(UniqueID(high: 1, low: 1)))
  private static let parent = RecordKey(table: "lists", record: "p")
  private static let key = RecordKey(table: "tasks", record: "a")

  private static func column(_ name: Name, _ value: Int64 = 1) -> ColumnState {
    ColumnState(name: name, value: .integer(value), stamp: stamp, sequence: 7)
  }

  private static func constraint(_ kind: Int32) -> SQLiteError {
    SQLiteError(code: SQLiteError.constraintCode | kind << 8, message: "no")
  }

  private static let (notNull, unique, foreignKey) = (constraint(5), constraint(8), constraint(3))

  // MARK: The record's deferred change

  private static let part = RecordState(columns: [column("a")])
  private static let whole = RecordState(
    inserted: SequencedStamp(stamp: stamp, sequence: 7), columns: [column("b")])

  /// Returns a deferred change; `nil` for one that this version cannot read.
  private static func deferred(_ state: RecordState?) -> KeptChange {
    KeptChange(
      change: Change(sequence: 3, key: key, state: state ?? RecordState()), isReadable: state != nil
    )
  }

  @Test("a change adds to the deferred one of its record")
  func overlay() {
    #expect(Fate.state(Self.part, over: nil) == Self.part)
    let earlier = RecordState(columns: [Self.column("a", 2), Self.column("c")])
    #expect(
      Fate.state(Self.part, over: Self.deferred(earlier))
        == RecordState(columns: [Self.column("a"), Self.column("c")]))
    #expect(Fate.state(Self.whole, over: Self.deferred(earlier)) == Self.whole)
    // A deferred change that this version cannot read.
    #expect(Fate.state(Self.whole, over: Self.deferred(nil)) == Self.whole)
    #expect(Fate.state(Self.part, over: Self.deferred(nil)) == nil)
  }

  // MARK: Steps

  struct Arrived: Sendable {
    let facts: Fate.Arrival
    let steps: [Fate.Step]

    init(_ facts: Fate.Arrival, _ steps: [Fate.Step]) { (self.facts, self.steps) = (facts, steps) }
  }

  private static let missing = Fate.LeftOut(reason: "no parent", deferral: .parent(parent))
  private static let here = Fate.LeftOut(
    reason: "no parent", deferral: .parent(parent), parent: parent)

  static let arrivals: [Arrived] = [
    Arrived(.init(), [.write]),
    Arrived(.init(isRetry: true), [.write]),
    Arrived(.init(hasQuestions: true), [.resolveQuestions, .write]),
    Arrived(.init(isRetry: true, hasQuestions: true), [.write]),
    Arrived(.init(table: .uploadOnly), []),
    Arrived(.init(table: .uploadOnly, hasQuestions: true), [.resolveQuestions]),
    Arrived(.init(table: .schema), [.storeSchema]),
    Arrived(.init(table: .unknown), [.deferUnknown]),
    Arrived(.init(table: .unknown, isOrphan: true), [.deferUnknown]),
    Arrived(.init(isUnrecorded: true), [.storeOverwritten, .write]),
    Arrived(.init(isRetry: true, isUnrecorded: true), [.write]),
    Arrived(.init(isOrphan: true), [.hold]),
    Arrived(.init(isRetry: true, isOrphan: true), [.hold]),
    Arrived(.init(isEndOfList: true, isOrphan: true), [.write]),
    Arrived(.init(isReferredTo: true), [.hold]),
    Arrived(.init(isRetry: true, isReferredTo: true), [.write]),
    Arrived(.init(isUnrecorded: true, isReferredTo: true), [.storeOverwritten, .hold]),
    Arrived(.init(isRetry: true, isOrphan: true, isAside: true), [.restoreRow, .hold]),
    Arrived(.init(isRetry: true, isAside: true), [.write]),
    Arrived(.init(leftOut: missing), [.leaveOut(missing)]),
    Arrived(.init(isOrphan: true, leftOut: missing), [.hold]),
    Arrived(.init(leftOut: here), [.leaveOut(here)]),
    Arrived(.init(isRetry: true, leftOut: here), [.leaveOut(missing)]),
  ]

  @Test("a change is written, deferred or held", arguments: arrivals)
  func steps(test: Arrived) { #expect(Fate.steps(for: test.facts) == test.steps) }

  // MARK: Rows

  struct Written: Sendable {
    let effect: RowEffect
    let facts: Fate.Row
    let write: Fate.Write

    init(_ effect: RowEffect, _ facts: Fate.Row, _ write: Fate.Write) {
      (self.effect, self.facts, self.write) = (effect, facts, write)
    }
  }

  private static let known: Set<Name> = ["a"]
  private static let (a, b) = (column("a"), column("b"))
  private static let kept = [Column("a", .integer(3)), Column("b", .integer(3))]

  static let rows: [Written] = [
    Written(.none, .init(), .nothing),
    Written(.delete, .init(), .delete),
    Written(.delete, .init(concernsOthers: true), .hold),
    Written(.delete, .init(isEndOfList: true, concernsOthers: true), .delete),
    Written(
      .upsert([a], isWhole: false, kept: []), .init(known: known),
      .upsert([a], isWhole: false, kept: [])),
    Written(
      .upsert([a, b], isWhole: false, kept: kept), .init(known: known, knowsAll: false),
      .upsert([a], isWhole: false, kept: [kept[0]])),
    Written(
      .upsert([b], isWhole: false, kept: []), .init(known: known, knowsAll: false), .nothing),
    Written(
      .upsert([b], isWhole: true, kept: []), .init(known: known, knowsAll: false),
      .upsert([], isWhole: true, kept: [])),
    Written(.upsert([], isWhole: false, kept: []), .init(), .nothing),
    Written(.upsert([a], isWhole: false, kept: []), .init(isRetry: true), .change([a])),
    Written(
      .upsert([a], isWhole: true, kept: []), .init(isRetry: true),
      .upsert([a], isWhole: true, kept: [])),
    Written(.upsert([a], isWhole: false, kept: []), .init(isAside: true), .restore([a])),
    Written(.upsert([], isWhole: false, kept: []), .init(isAside: true), .restore([])),
    Written(
      .upsert([a], isWhole: true, kept: []), .init(isRetry: true, isAside: true),
      .upsert([a], isWhole: true, kept: [])),
  ]

  @Test("a row is written as far as the table and the list permit", arguments: rows)
  func write(test: Written) { #expect(Fate.write(test.effect, test.facts) == test.write) }

  // MARK: Rejections

  struct Rejected: Sendable {
    let error: SQLiteError
    let facts: Fate.Failure
    let rejection: Fate.Rejection

    init(_ error: SQLiteError, _ facts: Fate.Failure, _ rejection: Fate.Rejection) {
      (self.error, self.facts, self.rejection) = (error, facts, rejection)
    }
  }

  static let rejections: [Rejected] = [
    Rejected(notNull, .init(isInTransaction: false), .endsTransaction(isAlone: true)),
    Rejected(unique, .init(isInTransaction: false), .endsTransaction(isAlone: false)),
    Rejected(notNull, .init(), .deferred(.definition, isWrite: false, isBlocked: false)),
    Rejected(unique, .init(), .deferred(.open, isWrite: true, isBlocked: true)),
    Rejected(unique, .init(isRetry: true), .deferred(.table, isWrite: false, isBlocked: true)),
    Rejected(
      unique, .init(isRetry: true, isShared: true),
      .deferred(.unseen, isWrite: false, isBlocked: true)),
    Rejected(foreignKey, .init(), .deferred(.open, isWrite: true, isBlocked: false)),
    Rejected(
      foreignKey, .init(isRetry: true), .deferred(.rows, isWrite: false, isBlocked: false)),
    Rejected(
      ApplyPlan.ignored, .init(isRetry: true),
      .deferred(.unseen, isWrite: false, isBlocked: true)),
  ]

  @Test("a rejected change waits for an event, or ends the transaction", arguments: rejections)
  func rejection(test: Rejected) {
    #expect(Fate.rejection(test.error, test.facts) == test.rejection)
  }

  @Test("columns missing here wait, without the insert")
  func rest() {
    let change = Change(sequence: 7, key: Self.key, state: Self.whole)
    #expect(Fate.rest(of: change, []) == nil)
    #expect(
      Fate.rest(of: change, [Self.b])
        == Change(sequence: 7, key: Self.key, state: RecordState(columns: [Self.b])))
  }
}

/// Rows without a parent after a pass (SPEC.md §28).
@Suite("Decisions about rows without a parent", .hangLimit)
struct ViolationTests {
  private static let child = RecordKey(table: "tasks", record: "a")
  private static let parent = RecordKey(table: "lists", record: "p")

  private static func violation(
    _ action: ForeignKey.Action, _ rule: ClashRule? = nil, isTracked: Bool = true,
    isParentDeleted: Bool = true, parent: RecordKey? = Self.parent, target: RecordKey? = nil,
    canRecall: Bool = false
  ) -> DeferredRecords.Violation {
    let table = TableSchema(
      name: "tasks", keys: [KeyColumn(local: "id", type: "TEXT")], columns: [])
    let link = ForeignKey(
      child: table, parent: "lists", from: ["list"], to: ["id"], onDelete: action, declared: rule)
    let row = DanglingRow(
      child: child, link: link, isTracked: isTracked, values: [.text("p")], parent: parent)
    return DeferredRecords.Violation(
      row: row, isParentDeleted: isParentDeleted, target: target, canRecall: canRecall)
  }

  @Test("a parent of own rows stays, and the list is applied again")
  func stays() {
    var deferred = DeferredRecords()
    #expect(deferred.decide([Self.violation(.none, target: Self.parent)]).isEmpty)
    #expect(deferred.held == [Self.parent])
    let rows = deferred.decide([Self.violation(.none, target: Self.parent)])
    #expect(rows.map(\.child) == [Self.child], "the second time, the row is deferred")
  }

  @Test("a parent deleted by this device returns, with a question if the rule asks")
  func returns() {
    for (rule, asked) in [(nil, []), (.ask, [Self.parent])] as [(ClashRule?, Set<RecordKey>)] {
      var deferred = DeferredRecords()
      #expect(deferred.decide([Self.violation(.restrict, rule, canRecall: true)]).isEmpty)
      #expect(deferred.recalled == [Self.parent])
      #expect(deferred.asked == asked)
      #expect(deferred.parents == [Self.child: Self.parent])
    }
  }

  @Test("no parent returns after one of them lacked a parent itself")
  func recallOff() {
    var deferred = DeferredRecords()
    deferred.recalled = [Self.child]
    let violation = Self.violation(.none, canRecall: true)
    #expect(deferred.decide([violation], recalled: [Self.child]).isEmpty)
    #expect(deferred.recalled.isEmpty && deferred.isRecallOff)
    #expect(deferred.decide([violation]).map(\.child) == [Self.child])
    #expect(deferred.recalled.isEmpty)
  }

  @Test("a row goes with a parent that the list deletes")
  func goes() {
    var deferred = DeferredRecords()
    #expect(deferred.decide([Self.violation(.cascade)]).isEmpty)
    #expect(deferred.orphans == [Self.child])
    #expect(deferred.decide([Self.violation(.cascade)]).count == 1, "the schema kept the row")
  }

  @Test("a row loses the reference to a parent that the list deletes")
  func released() {
    var deferred = DeferredRecords()
    #expect(deferred.decide([Self.violation(.setNull)]).isEmpty)
    #expect(deferred.released.keys.elementsEqual([Self.child]))
    #expect(deferred.decide([Self.violation(.setNull)]).count == 1)
  }

  @Test("any other row is deferred until its parent arrives")
  func waits() {
    var deferred = DeferredRecords()
    #expect(deferred.decide([Self.violation(.cascade, isParentDeleted: false)]).count == 1)
    #expect(deferred.parents == [Self.child: Self.parent])
    #expect(deferred.orphans.isEmpty)
    #expect(deferred.decide([Self.violation(.cascade, parent: nil)]).count == 1)
    #expect(deferred.decide([Self.violation(.none, isTracked: false)]).count == 1)
    #expect(deferred.held.isEmpty && deferred.recalled.isEmpty)
  }
}

import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Rows written while no trigger recorded them.
@Suite("Reconciling unrecorded rows", .hangLimit)
struct ReconciliationTests {
  private static let me = DeviceID(UniqueID(high: 0x7000, low: 1 << 63))
  private static let other = DeviceID(UniqueID(high: 0x7000, low: 1 << 63 | 2))

  private func stamp(_ device: DeviceID) -> Stamp {
    Stamp(time: HybridTimestamp(milliseconds: 9), device: device)
  }

  private func column(
    _ name: Name, _ value: Value, at sequence: SequenceNumber, by device: DeviceID = other
  ) -> ColumnState {
    ColumnState(name: name, value: value, stamp: stamp(device), sequence: sequence)
  }

  /// Returns a record with these columns; deleted at a place, if one is given.
  private func record(
    _ columns: [ColumnState], deletedAt deleted: SequenceNumber? = nil, by device: DeviceID = other
  ) -> RecordState {
    let time = HybridTimestamp(milliseconds: 1)
    return RecordState(
      inserted: deleted == nil
        ? SequencedStamp(stamp: Stamp(time: time, device: Self.other), sequence: 1) : nil,
      deleted: deleted.map { SequencedStamp(stamp: stamp(device), sequence: $0) },
      columns: columns)
  }

  private func machine(new columns: Set<Name>? = nil) -> Reconciliation {
    let rule = RowComparison.ColumnRule(affinity: .none, defaultValue: .constant(7))
    return Reconciliation(
      comparison: RowComparison(rules: ["a": rule, "b": rule]), since: 10, columns: columns,
      own: OwnNames(device: Self.me, former: []))
  }

  @Test("equal rows, and records that exist on neither side, need nothing")
  func nothing() {
    let state = record([column("a", 1, at: 3)])
    #expect(machine().decide(here: [Column("a", 1), Column("b", .null)], there: state).isNothing)
    #expect(machine().decide(here: nil, there: RecordState()).isNothing)
    #expect(machine().decide(here: nil, there: record([], deletedAt: 4)).isNothing)
  }

  @Test("a value written over a pending one is an edit on top of it, but NULL and defaults are not")
  func overwritten() {
    let found = machine().overwritten(
      here: [Column("a", "new"), Column("b", 7), Column("c", .null), Column("d", "same")],
      pending: [Column("a", "old"), Column("b", 8), Column("c", 9), Column("d", "same")])
    #expect(found == [Column("a", "old")])
  }

  @Test("values that a change replaces are lost, unless they are recorded or the same")
  func replaced() {
    let row = [Column("a", 1), Column("b", 2), Column("c", .null), Column("d", 4)]
    let change = record([column("a", 9, at: 3), column("b", 2, at: 3), column("c", 9, at: 3)])
    #expect(
      Reconciliation.replaced(row, by: change, besides: [])
        == Reconciliation.Decision(lost: [Column("a", 1)]))
    #expect(Reconciliation.replaced(row, by: change, besides: ["a"]).isNothing)
    #expect(
      Reconciliation.replaced(row, by: record([], deletedAt: 3), besides: ["b"])
        == Reconciliation.Decision(lost: [Column("a", 1), Column("d", 4)], losesRow: true))
    #expect(Reconciliation.replaced(nil, by: record([], deletedAt: 3), besides: []).isNothing)
  }

  @Test("a row that is missing here is fetched, never recorded as deleted")
  func missingHere() {
    let decision = machine().decide(here: nil, there: record([column("a", 1, at: 3)]))
    #expect(decision == Reconciliation.Decision(takesServer: true))
  }

  @Test("a row that only this device has is recorded as an insert")
  func missingThere() {
    let here = [Column("a", 1)]
    let insert = Reconciliation.Decision(isInserted: true)
    #expect(machine().decide(here: here, there: RecordState()) == insert)
    let never = RecordState(
      deleted: SequencedStamp(stamp: Stamp(time: .zero, device: Self.other), sequence: 99))
    #expect(machine().decide(here: here, there: never) == insert, "it never existed")
    #expect(machine().decide(here: here, there: record([], deletedAt: 10)) == insert)
    #expect(
      machine().decide(here: here, there: record([], deletedAt: 11, by: Self.me)) == insert,
      "this device deleted it, and it is here again")
  }

  @Test("a row that another device deleted later is removed, and its values are kept")
  func deletedLater() {
    let here = [Column("a", 1), Column("b", .null)]
    let decision = machine().decide(here: here, there: record([], deletedAt: 11))
    #expect(
      decision
        == Reconciliation.Decision(takesServer: true, lost: [Column("a", 1)], losesRow: true))
  }

  @Test("a value that differs is recorded unless another device wrote the column later")
  func differing() {
    let here = [Column("a", "mine"), Column("b", "x")]
    for state in [column("a", "old", at: 10), column("a", "old", at: 99, by: Self.me)] {
      let decision = machine().decide(here: here, there: record([state, column("b", "x", at: 2)]))
      #expect(decision == Reconciliation.Decision(edited: [Column("a", "old")]))
    }
    let later = record([column("a", "theirs", at: 11), column("b", "x", at: 2)])
    #expect(
      machine().decide(here: here, there: later)
        == Reconciliation.Decision(takesServer: true, lost: [Column("a", "mine")]))
    let absent = record([column("b", "x", at: 2)])
    #expect(
      machine().decide(here: here, there: absent)
        == Reconciliation.Decision(edited: [Column("a", .null)]))
  }

  @Test("pending columns are recorded; the rest of their record is not")
  func pending() {
    let here = [Column("a", "mine"), Column("b", "x")]
    let state = record([column("a", "old", at: 3), column("b", "y", at: 3)])
    #expect(
      machine().decide(here: here, there: state, pending: .updates(["a"]))
        == Reconciliation.Decision(edited: [Column("b", "y")]))
    #expect(
      machine().decide(here: here, there: RecordState(), pending: .updates(["a"]))
        == Reconciliation.Decision(isInserted: true), "an edit alone makes no record")
    #expect(machine().decide(here: here, there: state, pending: .delete).isNothing)
    #expect(machine().decide(here: nil, there: state, pending: .insert([])).isNothing)
  }

  @Test("NULL and defaults never replace a value of the server")
  func empty() {
    let state = record([column("a", "x", at: 3), column("b", "y", at: 3)])
    #expect(
      machine().decide(here: [Column("a", .null), Column("b", 7)], there: state)
        == Reconciliation.Decision(takesServer: true, lost: [Column("b", 7)]))
    #expect(
      machine(new: ["b"]).decide(here: [Column("a", "x"), Column("b", 7)], there: state)
        == Reconciliation.Decision(takesServer: true), "a new column was never written")
  }

  @Test("only the new columns of a table are compared, if its rows were recorded")
  func newColumns() {
    let state = record([column("a", "x", at: 3)])
    #expect(machine(new: ["b"]).decide(here: [Column("a", "else")], there: state).isNothing)
    #expect(machine(new: ["b"]).decide(here: nil, there: state).isNothing)
    #expect(machine(new: ["b"]).decide(here: [Column("a", 1)], there: RecordState()).isNothing)
    #expect(
      machine(new: ["b"]).decide(here: [Column("a", "else"), Column("b", "new")], there: state)
        == Reconciliation.Decision(edited: [Column("b", .null)]))
  }
}

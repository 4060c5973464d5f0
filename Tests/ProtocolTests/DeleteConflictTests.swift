import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Conflicts of deletes", .hangLimit)
struct DeleteConflictTests {
  private let one = DeviceID(UniqueID(high: 1, low: 1))
  private let two = DeviceID(UniqueID(high: 2, low: 2))

  private func operation(
    _ kind: OperationKind, at time: UInt64, base: SequenceNumber, _ columns: [Column] = []
  ) -> SyncOperation {
    let time = HybridTimestamp(rawValue: time)
    return SyncOperation(
      id: OperationID(UniqueID(timestamp: time, random: 0)),
      key: RecordKey(table: "t", record: "r"), kind: kind, time: time, columns: columns, base: base)
  }

  @Test(
    "a concurrent edit that a delete hides is reported as lost, in either order of times",
    arguments: [UInt64(50), 150])
  func concurrentEdit(editTime: UInt64) {
    var state = RecordState()
    func merge(_ operation: SyncOperation, _ device: DeviceID, _ sequence: SequenceNumber)
      -> Outcome
    {
      state.merge(operation, stamp: Stamp(time: operation.time, device: device), sequence: sequence)
    }
    _ = merge(operation(.insert, at: 1, base: 0, [Column("a", 1)]), one, 1)
    _ = merge(operation(.update, at: editTime, base: 1, [Column("a", 2)]), two, 2)
    let outcome = merge(operation(.delete, at: 100, base: 1), one, 3)
    #expect(!state.isAlive)
    #expect(outcome.conflicts.map(\.lost) == [2])
    #expect(!outcome.isOverruled)
  }

  @Test(
    "a write to a deleted record lists each value once, earlier and later ones",
    arguments: [OperationKind.update, .insert], [UInt64(50), 150])
  func laterEdit(_ kind: OperationKind, _ time: UInt64) {
    var state = RecordState()
    func merge(_ operation: SyncOperation, _ device: DeviceID, _ sequence: SequenceNumber)
      -> Outcome
    {
      state.merge(operation, stamp: Stamp(time: operation.time, device: device), sequence: sequence)
    }
    _ = merge(operation(.insert, at: 1, base: 0, [Column("a", 1), Column("b", 1)]), one, 1)
    _ = merge(operation(.delete, at: 100, base: 1), one, 2)
    var edit = operation(kind, at: time, base: 1, [Column("a", 2), Column("b", 3)])
    // An insert later than the delete would begin a new life.
    edit.columnTimes = ["b": HybridTimestamp(rawValue: 40)]
    let outcome = merge(edit, two, 3)
    #expect(!state.isAlive && outcome.isOverruled)
    #expect(outcome.conflicts.filter { $0.column == nil }.count == 1)
    #expect(outcome.conflicts.filter { $0.column == "a" }.map(\.lost) == [2])
    #expect(outcome.conflicts.filter { $0.column == "b" }.map(\.lost) == [3])
  }

  @Test("an edit that the deleting device had seen is not a conflict")
  func seenEdit() {
    var state = RecordState()
    _ = state.merge(
      operation(.insert, at: 1, base: 0, [Column("a", 1)]),
      stamp: Stamp(time: HybridTimestamp(rawValue: 1), device: two), sequence: 1)
    let outcome = state.merge(
      operation(.delete, at: 5, base: 1),
      stamp: Stamp(time: HybridTimestamp(rawValue: 5), device: one), sequence: 2)
    #expect(outcome == .applied)
  }
}

import FerryProtocol
import FerryTestSupport
import Testing

@Suite("The merged state of a record", .hangLimit)
struct RecordStateTests {
  @Test("an insert, its updates and its delete follow each other")
  func life() {
    var state = RecordState()
    #expect(state.merge(.insert(at: 1, [Column("a", 1), Column("b", 1)]), at: 1) == .applied)
    #expect(state.row == ["a": 1, "b": 1])
    #expect(state.merge(.update(at: 2, [Column("b", 2), Column("c", nil)]), at: 2) == .applied)
    #expect(state.row == ["a": 1, "b": 2, "c": nil])
    #expect(state.columns.map(\.name) == ["a", "b", "c"])
    #expect(state.merge(.delete(at: 3), at: 3) == .applied)
    #expect(state.row == nil)
    #expect(state.columns.isEmpty)
    #expect(state.sequence == 3)
  }

  @Test("the later write to a column wins, in either order of arrival")
  func lastWriterWins() {
    let start = Act.insert(at: 1, [Column("a", 0), Column("b", 0)])
    let early = Act.update(at: 2, by: 2, [Column("a", 2), Column("b", 2)])
    let late = Act.update(at: 3, by: 3, [Column("a", 3)])
    for order in [[start, early, late], [start, late, early]] {
      #expect(RecordState(order).row == ["a": 3, "b": 2])
    }
  }

  @Test("the newest author is the device that wrote last, by the order of the space")
  func newestAuthor() {
    let start = Act.insert(at: 1, by: 1, [Column("a", 0), Column("b", 0)])
    let update = Act.update(at: 2, by: 2, [Column("c", 2)])
    #expect(RecordState().newestAuthor == nil)
    #expect(RecordState([start]).newestAuthor == RecordState([start]).inserted?.stamp.device)
    let both = RecordState([start, update])
    #expect(both.newestAuthor == both.columns.last?.stamp.device)
    #expect(both.newestAuthor != both.inserted?.stamp.device)
    let gone = RecordState([start, update, .delete(at: 3, by: 3)])
    #expect(
      gone.newestAuthor == gone.deleted?.stamp.device && gone.newestAuthor != both.newestAuthor)
  }

  @Test("at equal times the greater device wins")
  func ties() {
    let start = Act.insert(at: 1, [Column("a", 0)])
    let small = Act.update(at: 2, by: 2, [Column("a", 2)])
    let great = Act.update(at: 2, by: 3, [Column("a", 3)])
    #expect(RecordState([start, small, great]).row == ["a": 3])
    #expect(RecordState([start, great, small]).row == ["a": 3])
  }

  @Test("a delete wins against an earlier edit and loses against a later insert")
  func deleteAndInsert() {
    let first = Act.insert(at: 1, [Column("a", 1)])
    let edit = Act.update(at: 2, by: 2, [Column("a", 2)])
    let delete = Act.delete(at: 3, by: 3)
    let again = Act.insert(at: 4, by: 2, [Column("b", 4)])
    #expect(RecordState([first, edit, delete]).row == nil)
    #expect(RecordState([first, delete, edit]).row == nil)
    #expect(RecordState([first, delete, edit, again]).row == ["b": 4])
    #expect(RecordState([again, delete, edit, first]).row == ["b": 4])
  }

  @Test("an insert that revives another device's later write is reported as overruled")
  func revivedWithColumns() {
    var state = RecordState([
      .insert(at: 1, [Column("a", 1)]), .delete(at: 2, by: 2),
      .update(at: 9, by: 3, [Column("b", 9)]),
    ])
    let outcome = state.merge(.insert(at: 10, by: 4, [Column("a", 4)]), at: 4)
    #expect(state.row == ["a": 4, "b": 9])
    #expect(outcome.isOverruled && outcome.conflicts.isEmpty)
  }

  @Test("an update never revives a deleted record, at any time")
  func updateOfDeleted() {
    var state = RecordState([.insert(at: 1, [Column("a", 1)]), .delete(at: 2, by: 2)])
    let outcome = state.merge(.update(at: 9, by: 3, [Column("a", 9)]), at: 3)
    #expect(outcome.isOverruled)
    #expect(
      outcome.conflicts == [
        Conflict(column: nil, lost: nil, loser: .at(9, 3), winner: .at(2, 2)),
        Conflict(column: "a", lost: 9, loser: .at(9, 3), winner: .at(2, 2)),
      ], "the value is listed, though no delete has erased it")
    #expect(state.row == nil)
    #expect(state.since(2)?.deleted?.sequence == 3, "its author is told of the delete")
  }

  @Test("a record that is inserted again contains its new columns only")
  func fewerColumns() {
    let state = RecordState([
      .insert(at: 1, [Column("a", 1), Column("b", 1)]), .delete(at: 2),
      .insert(at: 3, [Column("b", 3)]),
    ])
    #expect(state.row == ["b": 3])
    for cursor in 0...2 as ClosedRange<Int64> {
      #expect(state.since(cursor)?.inserted != nil, "it is given whole")
    }
    #expect(state.since(3) == nil)
  }

  @Test("an update of an absent record stays invisible until the record's insert")
  func ghost() {
    var state = RecordState()
    let outcome = state.merge(.update(at: 5, [Column("a", 5)]), at: 1)
    #expect(outcome.isOverruled && outcome.conflicts.isEmpty, "it has lost to nobody")
    #expect(state.row == nil)
    #expect(state.since(0) == nil, "there is nothing to tell")
    #expect(state.wholeBelow == 0)
    #expect(
      state.merge(.insert(at: 3, by: 2, [Column("a", 3), Column("b", 3)]), at: 2).isOverruled)
    #expect(state.row == ["a": 5, "b": 3])
    #expect(state.since(1)?.columns.count == 2, "it is given whole")
  }

  @Test("an overruled write lets its author pull the present value")
  func touchOnLoss() {
    var state = RecordState([.insert(at: 1, [Column("a", 1), Column("b", 1)])])
    _ = state.merge(.update(at: 5, by: 2, [Column("a", 5)]), at: 2)
    let outcome = state.merge(.update(at: 4, by: 3, [Column("a", 4)]), at: 3)
    #expect(
      outcome.conflicts == [
        Conflict(column: "a", lost: 4, loser: .at(4, 3), winner: .at(5, 2))
      ])
    #expect(outcome.isOverruled)
    #expect(state.since(2)?.columns.map(\.value) == [5])
  }

  @Test("an author's next pull reverts a column write that a delete overruled, in a new life too")
  func touchOnLossToDelete() {
    var state = RecordState([
      .insert(at: 1, [Column("a", 1), Column("c", 1)]), .delete(at: 5, by: 2),
      .insert(at: 6, by: 2, [Column("a", 6)]),
    ])
    // Written before the author pulled the delete and the new insert, sent after.
    let outcome = state.merge(.update(at: 3, by: 3, [Column("c", 3)]), at: 4)
    #expect(outcome.isOverruled)
    #expect(state.since(3)?.laid(over: ["a": 6, "c": 3]) == ["a": 6])
  }

  @Test("after a delete loses against a newer insert, its author pulls the whole record")
  func lateDelete() {
    var state = RecordState([.insert(at: 1, [Column("a", 1)]), .insert(at: 7, by: 2, [])])
    let outcome = state.merge(.delete(at: 3, by: 3), at: 3)
    #expect(outcome.isOverruled)
    #expect(state.since(2)?.inserted != nil)
    #expect(state.isAlive)
  }

  @Test("two deletes are one, and the author of the earlier one gets no conflict")
  func twoDeletes() {
    var state = RecordState([.insert(at: 1, [Column("a", 1)]), .delete(at: 4, by: 2)])
    #expect(state.merge(.delete(at: 3, by: 3), at: 3) == .applied)
    #expect(state.deleted?.stamp == .at(4, 2))
    #expect(state.since(2)?.deleted?.sequence == 3)
  }

  @Test("an overruled value is listed only if it differs and its author had not been seen")
  func conflictsSeen() {
    let start = Act.insert(at: 1, [Column("a", 1)])
    let table: [(base: Int64, device: UInt64, value: Value, conflicts: Int)] = [
      (base: 0, device: 2, value: 9, conflicts: 1),
      (base: 1, device: 2, value: 9, conflicts: 0),
      (base: 0, device: 1, value: 9, conflicts: 0),
      (base: 0, device: 2, value: 1, conflicts: 0),
    ]
    for row in table {
      var state = RecordState([start])
      let act = Act.update(at: 2, by: row.device, [Column("a", row.value)], base: row.base)
      let outcome = state.merge(act, at: 2)
      #expect(outcome.conflicts.count == row.conflicts, "\(row)")
      #expect(!outcome.isOverruled)
    }
  }

  @Test("values that a delete's author had not seen are listed as lost")
  func deleteListsUnseen() {
    var state = RecordState([
      .insert(at: 1, [Column("a", 1), Column("b", 1)]), .update(at: 2, by: 2, [Column("b", 2)]),
    ])
    let outcome = state.merge(.delete(at: 3, by: 3, base: 1), at: 3)
    #expect(!outcome.isOverruled)
    #expect(
      outcome.conflicts == [
        Conflict(column: "b", lost: 2, loser: .at(2, 2), winner: .at(3, 3))
      ])
  }

  @Test("a record without columns is listed as lost if the delete's author had not seen it")
  func deleteListsUnseenInsert() {
    for (base, isListed) in [(SequenceNumber(1), false), (0, true)] {
      var state = RecordState([.insert(at: 1, by: 2, [])])
      let outcome = state.merge(.delete(at: 3, by: 3, base: base), at: 3)
      #expect(!outcome.isOverruled)
      let lost = Conflict(column: nil, lost: .null, loser: .at(1, 2), winner: .at(3, 3))
      #expect(outcome.conflicts == (isListed ? [lost] : []))
    }
  }

  @Test("each column of a merged operation competes with its own time")
  func columnTimes() {
    let start = Act.insert(at: 1, [Column("a", 0), Column("b", 0)])
    let other = Act.update(at: 5, by: 2, [Column("a", 5), Column("b", 5)])
    let merged = Act.update(at: 6, [Column("a", 6), Column("b", 6)], times: ["b": 4])
    #expect(RecordState([start, other, merged]).row == ["a": 6, "b": 5])
    #expect(RecordState([start, merged, other]).row == ["a": 6, "b": 5])
  }

  @Test("a merged insert is as old as its oldest column, so a revived record is never partial")
  func mergedInsert() {
    // insert at 1, update at 9, merged before they were sent; the delete came between.
    let merged = Act.insert(at: 9, [Column("a", 9), Column("b", 1)], times: ["b": 1])
    let delete = Act.delete(at: 5, by: 2)
    for order in [[merged, delete], [delete, merged]] {
      #expect(RecordState(order).row == nil)
    }
  }

  @Test("a clamped time keeps a device's own writes in their order")
  func clamping() {
    // The device's clock is far ahead: the operations of 1000 and 2000 are clamped to 10 and 11.
    let start = Act.insert(at: 1, by: 2, [Column("a", 0), Column("b", 0)])
    let first = Act(.update, at: 1_000, [Column("a", 1)], clampedTo: 10)
    let second = Act(
      .update, at: 2_000, [Column("a", 2), Column("b", 2)], times: ["a": 1_500], clampedTo: 11)
    #expect(RecordState([start, first, second]).row == ["a": 2, "b": 2])
    let old = Act(
      .update, at: 2_000, [Column("a", 3), Column("b", 3)], times: ["a": 5], clampedTo: 11)
    #expect(RecordState([start, first, old]).row == ["a": 1, "b": 3], "5 is before the clamp")
  }
}

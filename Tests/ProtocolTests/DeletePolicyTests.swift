import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Deletes against edits, by policy", .hangLimit)
struct DeletePolicyTests {
  let start = Act.insert(at: 1, [Column("a", 1), Column("b", 1)])
  let edit = Act.update(at: 5, by: 2, [Column("a", 5)], base: 1)
  let delete = Act.delete(at: 8, by: 3, base: 1)

  private func rules(_ deletes: DeletePolicy) -> TableRules {
    TableRules(deletes: deletes, columns: ["c": ColumnRules(policy: .counter)])
  }

  private func outcome(_ acts: [Act], _ rules: TableRules) -> (RecordState, Outcome) {
    var state = RecordState()
    var outcome = Outcome.applied
    for (index, act) in acts.enumerated() {
      outcome = state.merge(act, at: Int64(index + 1), rules: rules)
    }
    return (state, outcome)
  }

  @Test("edit-wins: the record survives or returns whole in either order of arrival")
  func editWins() {
    let (after, deleted) = outcome([start, edit, delete], rules(.editWins))
    #expect(after.row == ["a": 5, "b": 1])
    #expect(deleted.conflicts == [.sample(nil, nil, .at(8, 3), .at(5, 2))])
    #expect(deleted.isOverruled)
    #expect(after.since(2)?.laid(over: nil) == after.row, "its author gets all of it again")
    let (before, edited) = outcome([start, delete, edit], rules(.editWins))
    #expect(before.row == ["a": 5, "b": 1])
    #expect(edited.conflicts == [.sample(nil, nil, .at(8, 3), .at(5, 2))], "the deleter is told")
    #expect(!edited.isOverruled)
    #expect(before.since(2)?.laid(over: nil) == before.row)
  }

  @Test("edit-wins: a delete by an author who had seen every edit deletes the record")
  func editSeen() {
    let seen = Act.delete(at: 8, by: 3, base: 2)
    let (state, result) = outcome([start, edit, seen], rules(.editWins))
    #expect(state.row == nil && result == .applied)
    #expect(state.since(2) == RecordState(deleted: state.deleted), "what it hides is not sent")
    let own = Act.delete(at: 8, by: 2, base: 1)
    #expect(outcome([start, edit, own], rules(.editWins)).0.row == nil)
  }

  @Test("ask: the present state stays, and the author of the other operation is asked")
  func ask() {
    let (after, deleted) = outcome([start, edit, delete], rules(.ask))
    #expect(after.row == ["a": 5, "b": 1])
    #expect(deleted.conflicts == [.sample(nil, nil, .at(8, 3), .at(5, 2), asks: true)])
    let (before, edited) = outcome([start, delete, edit], rules(.ask))
    #expect(before.row == nil)
    #expect(
      edited.conflicts == [
        .sample(nil, nil, .at(5, 2), .at(8, 3), asks: true),
        .sample("a", 5, .at(5, 2), .at(8, 3)),
      ])
    #expect(edited.isOverruled && before.since(2)?.deleted?.sequence == 3)
    let insert = Act.insert(at: 9, by: 2, [Column("a", 9)])
    #expect(outcome([start, delete, insert], rules(.ask)).0.row == nil, "an insert as well")
  }

  @Test("an insert by an author who had seen the delete begins a new life, even after a late edit")
  func answer() {
    let again = Act.insert(at: 9, by: 2, [Column("a", 9)], base: 2)
    for deletes in DeletePolicy.allCases where deletes != .editWins {
      let lost = Act.update(at: 6, by: 4, [Column("b", 6)], base: 1)
      let (state, result) = outcome([start, delete, lost, again], rules(deletes))
      #expect(state.row == ["a": 9], "\(deletes): a new life holds nothing of the former one")
      #expect(result == .applied, "\(deletes)")
    }
  }

  @Test("a record that is inserted again starts its counters again, and loses its hidden columns")
  func newLife() {
    let counted = Act.insert(at: 1, [Column("b", 1), Column("c", 10)])
    let late = Act.add(at: 20, by: 2, ["c": 1], base: 1)
    for deletes in DeletePolicy.allCases {
      let gone = Act.delete(at: 15, by: 3, base: 2)
      let again = Act.insert(at: 30, by: 3, [Column("c", 2)], base: 3)
      let (state, result) = outcome([counted, late, gone, again], rules(deletes))
      #expect(state.row == ["c": 2], "\(deletes)")
      #expect(result == .applied)
    }
  }

  @Test("an edit of the former life loses in the new one, and is listed")
  func editOfFormerLife() {
    for deletes in DeletePolicy.allCases {
      let acts = [start, delete, Act.insert(at: 20, by: 3, [Column("b", 2)], base: 2), edit]
      let (state, result) = outcome(acts, rules(deletes))
      #expect(state.row == ["b": 2], "\(deletes)")
      #expect(result.conflicts.map(\.lost) == [5] && result.isOverruled)
    }
  }

  @Test("edit-wins: an insert by an author who had not seen the delete restores the record")
  func concurrentInsert() {
    let other = Act.insert(at: 4, by: 2, [Column("a", 4), Column("d", 4)])
    let rules = rules(.editWins)
    let expected: [Name: Value] = ["a": 4, "b": 1, "d": 4]
    #expect(outcome([start, delete, other], rules).0.row == expected)
    #expect(outcome([start, other, delete], rules).0.row == expected)
  }

  @Test("of several deletes in a row the first one counts as seen")
  func deletes() {
    let acts = [
      start, Act.delete(at: 3, by: 2, base: 1), Act.delete(at: 9, by: 3, base: 1),
      Act.insert(at: 20, by: 4, [Column("a", 7)], base: 2),
    ]
    #expect(outcome(acts, rules(.editWins)).0.row == ["a": 7])
  }

  @Test("an increment that the deleting device had not seen is an edit")
  func sharedCounter() {
    let counted = Act.insert(at: 1, [Column("c", 0)])
    let other = Act.add(at: 2, by: 2, ["c": 1], base: 1)
    let own = Act.add(at: 3, by: 3, ["c": 1], base: 1)
    let (state, result) = outcome(
      [counted, other, own, Act.delete(at: 9, by: 3, base: 1)], rules(.editWins))
    #expect(state.row == ["c": 2] && result.isOverruled)
    let (gone, _) = outcome([counted, own, Act.delete(at: 9, by: 3, base: 1)], rules(.editWins))
    #expect(gone.row == nil)
  }

  @Test("under delete-wins with column policies, each column of a lost edit is listed")
  func deleteWins() {
    let (state, result) = outcome([start, delete, edit], rules(.deleteWins))
    #expect(state.row == nil)
    #expect(result.conflicts.map(\.column) == [nil, "a"])
    #expect(result.conflicts.map(\.isQuestion) == [false, false])
  }
}

import FerryProtocol
import FerryTestSupport
import Testing

/// Operations to which the rules of a space give way (SPEC.md §40). Device 2 writes first, and
/// device 1, the authority, has not seen it.
@Suite("Operations of an authority", .hangLimit)
struct AuthorityTests {
  private let start = Act.insert(at: 1, [Column("a", .null)])

  /// Merges acts, the last one as an authority's.
  private func merged(_ acts: [Act], _ rules: TableRules) -> (RecordState, Outcome) {
    var state = RecordState(Array(acts.dropLast()), rules: rules)
    let outcome = state.merge(
      acts[acts.count - 1], at: Int64(acts.count), rules: rules.forAuthority)
    return (state, outcome)
  }

  @Test(
    "under every policy of values, the later write of an authority stays",
    arguments: [
      ConflictPolicy.lastWriterWins, .serverWins, .clientWins, .max, .min, .ask, .setUnion,
      .textMerge,
    ])
  func values(policy: ConflictPolicy) {
    for (former, value) in [(9, 5), (5, 9), ("[1,2]", "[1]"), ("x", "y")] as [(Value, Value)] {
      let other = Act.update(at: 4, by: 2, [Column("a", former)], base: 1)
      let own = Act.update(at: 5, [Column("a", value)], base: 1)
      let (state, outcome) = merged([start, other, own], .all(policy))
      #expect(state.row == ["a": value], "\(policy): \(value) after \(former)")
      #expect(outcome.conflicts == [.sample("a", former, .at(4, 2), .at(5, 1))])
      #expect(!outcome.isOverruled)
    }
  }

  @Test("time alone decides, so the later write of a device stays")
  func later() {
    for policy in [ConflictPolicy.serverWins, .max, .min, .ask, .setUnion] {
      let other = Act.update(at: 9, by: 2, [Column("a", 7)], base: 1)
      let own = Act.update(at: 5, [Column("a", 8)], base: 1)
      let (state, outcome) = merged([start, other, own], .all(policy))
      #expect(state.row == ["a": 7] && outcome.isOverruled, "\(policy)")
      #expect(outcome.conflicts == [.sample("a", 8, .at(5, 1), .at(9, 2))])
    }
  }

  @Test("increments of an authority add up, as all do")
  func sums() {
    let start = Act.insert(at: 1, [Column("a", 0)])
    let other = Act.add(at: 4, by: 2, ["a": 10], base: 1)
    let (state, _) = merged([start, other, .add(at: 5, ["a": -3], base: 1)], .all(.counter))
    #expect(state.row == ["a": 7])
  }

  @Test("an authority's delete removes the record under every rule, and hides the columns")
  func deletes() {
    let edit = Act.update(at: 4, by: 2, [Column("a", 5)], base: 1)
    for rule in DeletePolicy.allCases {
      let rules = TableRules.all(.lastWriterWins, deletes: rule)
      let (deleted, outcome) = merged([start, edit, .delete(at: 6, base: 1)], rules)
      var state = deleted
      #expect(state.row == nil && !outcome.isOverruled, "\(rule)")
      #expect(outcome.conflicts == [.sample("a", 5, .at(4, 2), .at(6, 1))], "\(rule)")
      let late = Act.update(at: 7, by: 3, [Column("b", 1)], base: 1)
      _ = state.merge(late, at: 4, rules: rules)
      #expect(state.row == (rule == .editWins ? ["a": 5, "b": 1] : nil), "\(rule)")
    }
  }

  @Test("an authority's edit brings a record back unless deletes win")
  func edits() {
    for rule in DeletePolicy.allCases {
      let (state, _) = merged(
        [start, .delete(at: 4, by: 2, base: 1), .update(at: 5, [Column("a", 5)], base: 1)],
        .all(.lastWriterWins, deletes: rule))
      #expect(state.row == (rule == .deleteWins ? nil : ["a": 5]), "\(rule)")
    }
  }
}

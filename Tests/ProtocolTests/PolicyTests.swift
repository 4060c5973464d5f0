import FerryProtocol
import FerryTestSupport
import Testing

/// One write of device 1, then one of device 2 that had not seen it, unless a test states
/// otherwise.
@Suite("Policies of a column", .hangLimit)
struct PolicyTests {
  let start = Act.insert(at: 1, [Column("a", 0)])

  /// Returns the value and the outcome of the last act.
  private func last(_ acts: [Act], _ policy: ConflictPolicy) -> (value: Value?, outcome: Outcome) {
    var state = RecordState()
    var outcome = Outcome.applied
    for (index, act) in acts.enumerated() {
      outcome = state.merge(act, at: Int64(index + 1), rules: .all(policy))
    }
    return (state.row?["a"], outcome)
  }

  @Test("server-wins: the present value stays against a concurrent write, else the latest wins")
  func serverWins() {
    let first = Act.update(at: 2, [Column("a", 1)], base: 1)
    let late = last([start, first, .update(at: 9, by: 2, [Column("a", 2)], base: 1)], .serverWins)
    #expect(late.value == 1)
    #expect(late.outcome.conflicts == [.sample("a", 2, .at(9, 2), .at(2, 1))])
    #expect(late.outcome.isOverruled)
    let seen = last([start, first, .update(at: 9, by: 2, [Column("a", 2)], base: 2)], .serverWins)
    #expect(seen.value == 2 && seen.outcome == .applied)
    let own = last([start, first, .update(at: 9, by: 1, [Column("a", 2)], base: 1)], .serverWins)
    #expect(own.value == 2 && own.outcome == .applied)
    let same = last([start, first, .update(at: 9, by: 2, [Column("a", 1)], base: 1)], .serverWins)
    #expect(same.value == 1 && same.outcome == .applied)
  }

  @Test("client-wins: the write that arrives last wins, with any clocks")
  func clientWins() {
    let first = Act.update(at: 9, [Column("a", 1)], base: 1)
    let early = last([start, first, .update(at: 2, by: 2, [Column("a", 2)], base: 1)], .clientWins)
    #expect(early.value == 2)
    #expect(early.outcome.conflicts == [.sample("a", 1, .at(9, 1), .at(2, 2))])
    #expect(!early.outcome.isOverruled)
  }

  @Test("ask: the present value stays, and the author of a concurrent write is asked")
  func ask() {
    let first = Act.update(at: 2, [Column("a", 1)], base: 1)
    let late = last([start, first, .update(at: 9, by: 2, [Column("a", 2)], base: 1)], .ask)
    #expect(late.value == 1)
    #expect(late.outcome.conflicts == [.sample("a", 2, .at(9, 2), .at(2, 1), asks: true)])
    #expect(late.outcome.isOverruled)
    let answer = last(
      [
        start, first, .update(at: 9, by: 2, [Column("a", 2)], base: 1),
        .update(at: 10, by: 2, [Column("a", 2)], base: 3),
      ], .ask)
    #expect(answer.value == 2 && answer.outcome == .applied)
  }

  @Test("a losing write that restates a value does not make it new to authors who had seen it")
  func origins() {
    // Device 2 had seen sequence 2; device 3's losing write sends the value again at 3.
    let acts = [
      start, .update(at: 5, [Column("a", 1)], base: 1),
      .update(at: 4, by: 3, [Column("a", 3)], base: 1),
      .update(at: 9, by: 2, [Column("a", 2)], base: 2),
    ]
    for policy in [ConflictPolicy.ask, .serverWins, .lastWriterWins] {
      let result = last(acts, policy)
      #expect(result.value == 2 && result.outcome == .applied, "\(policy)")
    }
  }

  @Test("max and min compare values; NULL gives way to every value")
  func extremes() {
    let low = Act.update(at: 9, by: 2, [Column("a", -3)], base: 1)
    #expect(last([start, low], .max).value == 0)
    #expect(last([start, low], .max).outcome.conflicts.map(\.lost) == [-3])
    #expect(last([start, low], .min).value == -3)
    for policy in [ConflictPolicy.max, .min] {
      let empty = Act.insert(at: 1, [Column("a", nil)])
      #expect(last([empty, low], policy).value == -3, "\(policy)")
      #expect(last([low, .insert(at: 20, [Column("a", nil)])], policy).value == -3, "\(policy)")
    }
  }

  @Test("counters add increments, also under other policies, and wrap")
  func counters() {
    let adds = [start, .add(at: 5, by: 2, ["a": 5]), .add(at: 3, by: 3, ["a": -2])]
    for policy in ConflictPolicy.allCases {
      let result = last(adds, policy)
      #expect(result.value == 3 && result.outcome == .applied, "\(policy)")
    }
    let full = Act.insert(at: 1, [Column("a", .integer(.max))])
    #expect(last([full, .add(at: 2, ["a": 1])], .counter).value == .integer(.min))
    let text = Act.insert(at: 1, [Column("a", "many")])
    let replaced = last([text, .add(at: 2, by: 2, ["a": 4])], .counter)
    #expect(replaced.value == 4)
    #expect(replaced.outcome.conflicts.map(\.lost) == ["many"])
    #expect(last([.insert(at: 1, []), .add(at: 2, ["a": 4])], .counter).value == 4)
  }

  @Test("a counter that two devices insert is the sum; an update without the schema sets it")
  func wholeCounters() {
    let both = last(
      [.insert(at: 1, [Column("a", 2)]), .insert(at: 2, by: 2, [Column("a", 3)])], .counter)
    #expect(both.value == 5)
    #expect(both.outcome.isOverruled && both.outcome.conflicts.isEmpty, "its author pulls the sum")
    let nothing = last([start, .insert(at: 2, by: 2, [Column("a", "x")])], .counter)
    #expect(nothing.value == 0 && nothing.outcome.conflicts.map(\.lost) == ["x"])
    let set = last([start, .update(at: 5, by: 2, [Column("a", 9)])], .counter)
    #expect(set.value == 9 && set.outcome.conflicts.map(\.lost) == [0])
    #expect(
      last([start, .add(at: 7, ["a": 1]), .update(at: 5, [Column("a", 9)])], .counter).value == 1)
  }

  @Test("a value built by several devices is concurrent to each author who had not seen all")
  func shared() {
    // Device 2 adds without having seen 1's increment, then sets without having seen the sum.
    let set = Act.update(at: 9, by: 2, [Column("a", 7)], base: 1)
    let acts = [start, .add(at: 4, ["a": 1], base: 1), .add(at: 5, by: 2, ["a": 10], base: 1), set]
    let result = last(acts, .counter)
    #expect(result.value == 7)
    #expect(result.outcome.conflicts.map(\.lost) == [11])
    let own = last([start, .add(at: 5, by: 2, ["a": 10], base: 1), set], .counter)
    #expect(own.outcome == .applied, "its own increment only")
  }

  @Test("set-union unites arrays; elements are only added")
  func setUnion() {
    func union(_ first: Value, _ second: Value) -> (value: Value?, outcome: Outcome) {
      last(
        [.insert(at: 1, [Column("a", first)]), .update(at: 2, by: 2, [Column("a", second)])],
        .setUnion)
    }
    let united = union(#"["b","a"]"#, #"["c", "\u0061", 1, 1.0, null, true]"#)
    #expect(united.value == #"["a","b","c",1,1.0,null,true]"#)
    #expect(united.outcome.isOverruled && united.outcome.conflicts.isEmpty)
    #expect(union(#"["b","a"]"#, #"["b","a"]"#).value == #"["b","a"]"#, "equal texts stay")
    #expect(union("[]", "[1]").outcome == .applied, "the author has it already")
    #expect(union(#"["a"]"#, nil).value == #"["a"]"#)
    #expect(union(#"["a"]"#, nil).outcome.conflicts.map(\.lost) == [nil])
    #expect(union("plain", "[2]").value == "[2]")
    #expect(union("[1]", "[[2]]").value == "[1]", "an array of arrays is no array of scalars")
    #expect(union("plain", "later").value == "later", "the latest of two that are no arrays")
    let long = "[\"" + String(repeating: "x", count: 600_000) + "\"]"
    let other = "[\"" + String(repeating: "y", count: 600_000) + "\"]"
    #expect(union(.text(long), .text(other)).value == .text(other), "too large to unite")
  }

  @Test("text-merge keeps changes of both sides; overlapping changes are asked")
  func textMerge() {
    let begun = Act.insert(at: 1, [Column("a", "1\n2\n3\n4\n")])
    let first = Act.edit(at: 2, "1!\n2\n3\n4\n", from: "1\n2\n3\n4\n", base: 1)
    let apart = Act.edit(at: 3, by: 2, "1\n2\n3\n4?\n", from: "1\n2\n3\n4\n", base: 1)
    let both = last([begun, first, apart], .textMerge)
    #expect(both.value == "1!\n2\n3\n4?\n")
    #expect(both.outcome.isOverruled && both.outcome.conflicts.isEmpty, "its author pulls it")
    #expect(last([begun, apart, first], .textMerge).value == both.value)
    let same = Act.edit(at: 3, by: 2, "1?\n2\n3\n4\n", from: "1\n2\n3\n4\n", base: 1)
    let asked = last([begun, first, same], .textMerge)
    #expect(asked.value == "1!\n2\n3\n4\n")
    #expect(
      asked.outcome.conflicts
        == [.sample("a", "1?\n2\n3\n4\n", .at(3, 2), .at(2, 1), asks: true)])
    let seen = Act.edit(at: 3, by: 2, "1?\n2\n3\n4\n", from: "1!\n2\n3\n4\n", base: 2)
    #expect(last([begun, first, seen], .textMerge).outcome == .applied)
  }

  @Test("text-merge without an original asks if the author had not seen the present value")
  func textWithoutOriginal() {
    let begun = Act.insert(at: 1, [Column("a", "1\n")])
    let unseen = last([begun, .insert(at: 3, by: 2, [Column("a", "2\n")])], .textMerge)
    #expect(unseen.value == "1\n" && unseen.outcome.conflicts.map(\.isQuestion) == [true])
    let seen = last([begun, .update(at: 3, by: 2, [Column("a", "2\n")], base: 1)], .textMerge)
    #expect(seen.value == "2\n" && seen.outcome == .applied)
    let blob = Act.edit(at: 3, by: 2, .blob([1]), from: "0\n")
    #expect(last([begun, blob], .textMerge).outcome.conflicts.map(\.isQuestion) == [true])
  }

  @Test("columns of one table follow different policies")
  func mixed() {
    let rules = TableRules(
      policy: .serverWins,
      columns: ["b": ColumnRules(policy: .max), "c": ColumnRules(policy: .counter)])
    let first = Act.insert(at: 1, [Column("a", 1), Column("b", 1), Column("c", 1), Column("d", 1)])
    let second = Act.insert(
      at: 2, by: 2, [Column("a", 2), Column("b", 2), Column("c", 2), Column("d", 2)])
    #expect(
      RecordState([first, second], rules: rules).row == ["a": 1, "b": 2, "c": 3, "d": 1])
  }
}

import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Values that an operation with a reason overrules", .hangLimit)
struct OverruledTests {
  /// Merges the acts, and returns the values that the last one overrules, in the form `x by 2`.
  private func overruled(
    _ acts: [Act], _ rules: TableRules = .standard
  ) -> [String] {
    var (state, before) = (RecordState(), RecordState())
    for (index, act) in acts.enumerated() {
      before = state
      _ = state.merge(
        act.operation, stamp: act.stamp, sequence: Int64(index + 1), rules: rules)
    }
    guard let last = acts.last else { return [] }
    return before.overruled(by: last.stamp, at: Int64(acts.count), leaving: state).map { lost in
      let device = (1...9).first { DeviceID.sample($0) == lost.loser.device } ?? 0
      return "\(lost.column?.text ?? "the record") by \(device)"
    }
  }

  private let insert = Act.insert(at: 1, [Column("a", 1), Column("b", 1)])

  @Test("replaced values of other devices are overruled, whether the author had seen them or not")
  func replaced() {
    for base in [SequenceNumber(0), 1] {
      #expect(overruled([insert, .update(at: 2, by: 2, [Column("a", 2)], base: base)]).count == 1)
    }
    #expect(overruled([insert, .update(at: 2, [Column("a", 2)])]) == [])
    #expect(overruled([insert, .update(at: 2, by: 2, [Column("a", 1)])]) == [])
    #expect(overruled([insert, .update(at: 2, by: 2, [Column("c", 1)])]) == [])
    let later = Act.update(at: 9, by: 3, [Column("a", 9)])
    #expect(overruled([insert, later, .update(at: 2, by: 2, [Column("a", 2)])]) == [])
  }

  @Test("a delete overrules the insert and all values of other devices, unless it loses")
  func deleted() {
    let edit = Act.update(at: 2, by: 2, [Column("b", 2)])
    let delete = Act.delete(at: 3, by: 3, base: 2)
    #expect(overruled([insert, edit, delete]) == ["the record by 1", "a by 1", "b by 2"])
    #expect(overruled([insert, edit, .delete(at: 3, by: 1)]).count == 1)
    #expect(overruled([insert, .update(at: 9, by: 2, []), .delete(at: 0, by: 3)]) == [])
    #expect(overruled([insert, delete, .delete(at: 4, by: 2)]) == [])
  }

  @Test("a record that exists again overrules another device's delete")
  func revived() {
    let delete = Act.delete(at: 2, by: 2)
    #expect(overruled([insert, delete, .insert(at: 3, by: 3, [Column("a", 3)])]).count == 1)
    #expect(overruled([insert, delete, .insert(at: 3, by: 2, [Column("a", 3)])]) == [])
    #expect(overruled([insert, delete, .update(at: 3, by: 3, [Column("a", 3)])]) == [])
    let edit = Act.update(at: 1, by: 3, [Column("a", 3)])
    #expect(overruled([insert, delete, edit], TableRules(deletes: .editWins)).count == 1)
  }

  @Test("merged values lose nothing")
  func merged() {
    var add = Act.update(at: 2, by: 2, [Column("a", 5)])
    add.operation.increments = ["a"]
    #expect(overruled([insert, add], TableRules(policy: .counter)) == [])
    let list = Act.insert(at: 1, [Column("a", "[1]")])
    let more = Act.update(at: 2, by: 2, [Column("a", "[2]")])
    #expect(overruled([list, more], TableRules(policy: .setUnion)) == [])
    #expect(overruled([list, more]).count == 1)
  }
}

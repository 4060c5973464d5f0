import FerryProtocol
import FerryTestSupport
import Testing

/// Laws for any operations under any policy, tried on seeded ones.
@Suite("Algebra of the policies", .hangLimit)
struct PolicyAlgebraTests {
  static let seeds: ClosedRange<UInt64> = 1...100
  /// Those under which neither order nor grouping matters.
  static let orderless: [ConflictPolicy] = [.max, .min, .counter, .setUnion, .lastWriterWins]

  @Test(
    "on a living record any order of arrival results in the same values", arguments: orderless,
    seeds)
  func anyOrder(policy: ConflictPolicy, seed: UInt64) {
    var maker = PolicyActs(seed: seed, policy)
    var acts = maker.acts(4, deletes: false)
    acts.insert(.insert(at: 1, by: 4, []), at: 0)
    let expected = RecordState(acts, rules: .all(policy)).row
    #expect(expected != nil)
    for order in permutations(of: acts) {
      let row = RecordState(order, rules: .all(policy)).row
      guard row != expected else { continue }
      Issue.record("\(order.map(\.operation)) gives \(String(describing: row))")
      return
    }
  }

  /// Checks, under the other policies, an operation after which no other writes.
  @Test("merging an operation again changes no value", arguments: ConflictPolicy.allCases, seeds)
  func idempotence(policy: ConflictPolicy, seed: UInt64) {
    guard policy != .counter && policy != .textMerge else { return }
    var maker = PolicyActs(seed: seed, policy)
    let acts = maker.acts(8, deletes: false)
    var state = RecordState(acts, rules: .all(policy))
    for (index, act) in acts.enumerated()
    where Self.orderless.contains(policy) || index == acts.count - 1 {
      let row = state.row
      _ = state.merge(act, at: Int64(20 + index), rules: .all(policy))
      #expect(state.row == row, "operation \(index + 1)")
    }
  }

  @Test(
    "the changes after a cursor, applied to the row at that cursor, result in the present row",
    arguments: seeds)
  func since(seed: UInt64) {
    for history in PolicyHistory.all(seed: seed) {
      for now in history.states.indices {
        for cursor in 0...now {
          let change = history.states[now].since(Int64(cursor))
          let row = history.states[cursor].row
          #expect(
            (change.map { $0.laid(over: row) } ?? row) == history.states[now].row,
            "\(history.rules) from \(cursor) to \(now)")
        }
      }
    }
  }

  @Test("an operation's author has the server's row after its next pull", arguments: seeds)
  func authors(seed: UInt64) {
    for history in PolicyHistory.all(seed: seed) {
      for (index, act) in history.acts.enumerated() {
        let now = history.states[index + 1]
        for cursor in 0...index {
          guard let local = act.operation.applied(to: history.states[cursor].row) else { continue }
          let change = now.since(Int64(cursor))
          let row = change.map { $0.laid(over: local.row) } ?? local.row
          #expect(row == now.row, "\(history.rules): \(index + 1), pulling from \(cursor)")
        }
      }
    }
  }

  @Test(
    "a state is read back from its JSON unchanged, including values that a delete hides",
    arguments: seeds)
  func roundTrip(seed: UInt64) throws {
    for state in PolicyHistory.all(seed: seed).flatMap(\.states) {
      let bytes = state.encoded()
      let read = try bytes.withUnsafeBytes { try RecordState(decoding: $0, limits: .standard) }
      #expect(read == state)
      #expect(read.encoded() == bytes)
      try state.expectStored()
      for cursor in 0..<max(state.wholeBelow, 0) { #expect(state.since(cursor) == state) }
    }
  }

  @Test("every lost value is listed", arguments: seeds)
  func losses(seed: UInt64) {
    for history in PolicyHistory.all(seed: seed) {
      for (index, act) in history.acts.enumerated() {
        let (before, after) = (history.states[index], history.states[index + 1])
        let lost = history.outcomes[index].conflicts.filter { $0.column != nil }
        let label = "\(history.rules): operation \(index + 1)"
        let policy = history.rules.policy
        for column in act.operation.columns {
          #expect(
            lost.contains { $0.column == column.name && $0.lost == column.value }
              || act.keeps(column.name, column.value, from: before, to: after, policy),
            "\(label), \(column)")
        }
        for column in before.columns
        where before.isAlive && column.isUnseen(by: act.device, since: act.operation.base) {
          let isKept =
            after.isAlive
            && act.keeps(column.name, column.value, from: before, to: after, policy)
          #expect(
            isKept || lost.contains { $0.column == column.name && $0.lost == column.value },
            "\(label), \(column)")
        }
      }
    }
  }

  @Test("under edit-wins and ask, no delete removes values that its author had not seen")
  func deletesOfUnseen() {
    for seed in Self.seeds {
      for history in PolicyHistory.all(seed: seed) where history.rules.deletes != .deleteWins {
        for (index, act) in history.acts.enumerated() where act.operation.kind == .delete {
          let before = history.states[index]
          let unseen = before.columns.contains {
            $0.isUnseen(by: act.device, since: act.operation.base)
          }
          #expect(!before.isAlive || !unseen || history.states[index + 1].row == before.row)
        }
      }
    }
  }
}

/// Operations of three devices on one record, of all kinds handled by a policy.
struct PolicyActs {
  private var random: SeededGenerator
  private let policy: ConflictPolicy

  init(seed: UInt64, _ policy: ConflictPolicy) {
    random = SeededGenerator(seed: seed)
    self.policy = policy
  }

  mutating func acts(_ count: Int, deletes: Bool) -> [Act] {
    (0..<count).map { index in act(index, deletes: deletes) }
  }

  private mutating func act(_ index: Int, deletes: Bool) -> Act {
    let device = UInt64.random(in: 1...3, using: &random)
    // Times of all devices are mixed; the last digits keep them apart.
    let time = Int64.random(in: 1...12, using: &random) * 1_000 + Int64(index) * 10
    let base = Int64.random(in: 0...Int64(index), using: &random)
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<3:
      return Act.insert(at: time, by: device, columns(index), base: base)
    case 3..<8: return update(index, at: time, by: device, base)
    default:
      return deletes
        ? .delete(at: time, by: device, base: base) : update(index, at: time, by: device, base)
    }
  }

  private mutating func update(
    _ index: Int, at time: Int64, by device: UInt64, _ base: SequenceNumber
  ) -> Act {
    let columns = columns(index)
    if policy == .counter {
      let amounts = columns.map { ($0.name, Int64.random(in: -9...9, using: &random)) }
      return .add(
        at: time, by: device, Dictionary(uniqueKeysWithValues: amounts), base: base)
    }
    var act = Act.update(at: time, by: device, columns, base: base)
    if policy == .textMerge {
      for column in columns where random.chance(3, of: 4) {
        act.operation.originals.append(Column(column.name, text()))
      }
    }
    return act
  }

  private mutating func columns(_ index: Int) -> [Column] {
    let names = ["a", "b", "c"].filter { _ in random.chance(1, of: 2) }
    return names.map { Column($0, value(index)) }
  }

  private mutating func value(_ index: Int) -> Value {
    switch policy {
    case .counter: return .integer(Int64.random(in: 0...99, using: &random))
    case .textMerge: return text()
    case .setUnion:
      let elements = (0..<6).filter { _ in random.chance(1, of: 3) }
      if random.chance(1, of: 8) { return random.chance(1, of: 2) ? nil : "no array" }
      return .text("[\(elements.map(String.init).joined(separator: ", "))]")
    default:
      let number = Int64.random(in: -2...2, using: &random)
      let values: [Value] = [
        .integer(number), .real(Double(number)), .real(-0.0), .real(0.5), nil,
        .text("\(number)"), .blob([UInt8(number + 2)]), .integer(.max), .real(0x1p63),
      ]
      return values[Int.random(in: values.indices, using: &random)]
    }
  }

  /// Returns one of a few versions of a text of five lines.
  private mutating func text() -> Value {
    let lines = (1...5).map { line in
      random.chance(1, of: 4) ? "\(line)!\n" : "\(line)\n"
    }
    return .text(lines.joined())
  }
}

/// Twelve operations, the states around them and the outcome of each.
struct PolicyHistory {
  let rules: TableRules
  let acts: [Act]
  /// The empty one first.
  var states = [RecordState()]
  var outcomes: [Outcome] = []

  init(seed: UInt64, _ policy: ConflictPolicy, _ deletes: DeletePolicy) {
    rules = .all(policy, deletes: deletes)
    var maker = PolicyActs(seed: seed, policy)
    acts = maker.acts(12, deletes: true)
    for (index, act) in acts.enumerated() {
      var next = states[index]
      outcomes.append(next.merge(act, at: Int64(index + 1), rules: rules))
      states.append(next)
    }
  }

  /// Returns one history for each policy of columns with each of deletes.
  static func all(seed: UInt64) -> [PolicyHistory] {
    ConflictPolicy.allCases.flatMap { policy in
      DeletePolicy.allCases.map { PolicyHistory(seed: seed, policy, $0) }
    }
  }
}

extension SyncOperation {
  /// Returns the row of the author after the operation; `nil` if the operation was impossible.
  fileprivate func applied(to row: [Name: Value]?) -> (row: [Name: Value]?, Void)? {
    switch (kind, row) {
    case (.insert, nil):
      return (Dictionary(uniqueKeysWithValues: columns.map { ($0.name, $0.value) }), ())
    case (.update, var row?):
      for column in columns {
        guard increments.contains(column.name), case .integer(let amount) = column.value else {
          row[column.name] = column.value
          continue
        }
        if case .integer(let total) = row[column.name] {
          row[column.name] = .integer(total &+ amount)
        } else {
          row[column.name] = column.value
        }
      }
      return (row, ())
    case (.delete, _?): return (nil, ())
    default: return nil
    }
  }
}

extension Act {
  /// Returns true if a value is a part of the column after this operation: as a summand, as some
  /// elements, as a changed line. The value was written by the operation, or was there before.
  fileprivate func keeps(
    _ name: Name, _ part: Value, from before: RecordState, to after: RecordState,
    _ policy: ConflictPolicy
  ) -> Bool {
    guard let whole = after[name] else { return false }
    if whole == part { return true }
    switch (policy, part, whole) {
    case (.counter, .integer, .integer): return true
    case (.setUnion, .text, .text): return ArrayUnion.of(part, whole) == .union(whole)
    case (.textMerge, _, _):
      guard let original = operation.original(of: name), let existing = before[name],
        let incoming = operation.columns.first(where: { $0.name == name })?.value
      else { return false }
      // A value equal to the original was seen, wherever it was written.
      return part == original || TextMerge.merge(original: original, existing, incoming) == whole
    default: return false
    }
  }
}

extension RecordState {
  fileprivate subscript(_ name: Name) -> Value? { columns.first { $0.name == name }?.value }
}

import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Merging operations by policy before they are sent", .hangLimit)
struct OperationJoinTests {
  static func operation(
    _ number: UInt64, _ kind: OperationKind, _ columns: [Column] = [], adds: Set<Name> = [],
    from originals: [Column] = [], base: SequenceNumber = 0
  ) -> SyncOperation {
    let time = HybridTimestamp(rawValue: number << 16)
    return SyncOperation(
      id: OperationID(UniqueID(timestamp: time, random: 1)),
      key: RecordKey(table: "t", record: "r"), kind: kind, time: time, columns: columns,
      base: base, increments: adds, originals: originals)
  }

  static func joined(_ operations: [SyncOperation], _ rules: TableRules) -> [SyncOperation] {
    var merger = OperationMerger(schema: SpaceSchema(tables: ["t": rules]))
    for operation in operations { merger.add(operation) }
    #expect(merger.count == merger.operations.count)
    #expect(merger.bytes == merger.operations.reduce(0) { $0 + $1.packetBytes })
    return merger.operations
  }

  let counter = TableRules(policy: .counter)

  @Test("increments stay unmerged, and so does an insert's value that begins a sum")
  func increments() {
    let insert = Self.operation(1, .insert, [Column("a", 10)])
    let add = Self.operation(2, .update, [Column("a", 2)], adds: ["a"])
    let more = Self.operation(3, .update, [Column("a", 3), Column("b", "x")], adds: ["a"])
    let write = Self.operation(4, .update, [Column("c", "y")])
    let rules = TableRules(columns: ["a": ColumnRules(policy: .counter)])
    let all = [insert, add, more, write]
    #expect(Self.joined(all, rules) == all)
    #expect(Self.joined([add, more], .standard) == [add, more])
    let empty = Self.operation(1, .insert, [Column("a", 0)])
    #expect(Self.joined([empty, write], rules).map(\.kind) == [.insert])
    let delete = Self.operation(5, .delete)
    #expect(Self.joined([add, more, delete], rules) == [add, delete])
  }

  @Test("an operation with a reason is merged with those of the same reason only")
  func reasons() {
    func with(_ reason: String?, _ operation: SyncOperation) -> SyncOperation {
      var with = operation
      with.reason = reason
      return with
    }
    let update = Self.operation(1, .update, [Column("a", 1)])
    let later = Self.operation(2, .update, [Column("b", 2)])
    let delete = Self.operation(3, .delete)
    for (first, second) in [("x", nil), (nil, "x"), ("x", "y")] as [(String?, String?)] {
      let all = [with(first, update), with(second, later), with(first, delete)]
      #expect(Self.joined(all, .standard) == all)
    }
    let same = Self.joined([with("x", update), with("x", later)], .standard)
    #expect(same.map(\.reason) == ["x"] && same.first?.columns.count == 2)
    #expect(Self.joined([with("x", update), with("x", delete)], .standard) == [with("x", delete)])
    let insert = Self.operation(1, .insert, [])
    #expect(Self.joined([insert, with("x", delete)], .standard) == [insert, with("x", delete)])
  }

  @Test("increments that a copy of the file sends as well are added once")
  func copies() {
    let device = DeviceID(UniqueID(high: 2, low: 2))
    let insert = Self.operation(1, .insert, [Column("a", 10)])
    let shared = Self.operation(2, .update, [Column("a", 2)], adds: ["a"])
    let own = Self.operation(3, .update, [Column("a", 3)], adds: ["a"])
    let copied = Self.operation(4, .update, [Column("a", 5)], adds: ["a"])
    var state = RecordState()
    var known = Set<OperationID>()
    // The copy sends both of the shared ones, and then the copy's own; the original does the same.
    for group in [[insert, shared], [copied], [insert, shared, own]] {
      for operation in Self.joined(group, counter) where known.insert(operation.id).inserted {
        _ = state.merge(
          operation, stamp: Stamp(time: operation.time, device: device),
          sequence: SequenceNumber(known.count), rules: counter)
      }
    }
    #expect(state.columns.map(\.value) == [20])
  }

  @Test("a sum and a value that replaces it stay separate")
  func sumAndValue() {
    let add = Self.operation(1, .update, [Column("a", 2)], adds: ["a"])
    let set = Self.operation(2, .update, [Column("a", 9)])
    #expect(Self.joined([add, set], counter) == [add, set])
    let later = Self.operation(3, .update, [Column("a", 1)], adds: ["a"])
    #expect(Self.joined([set, later], counter) == [set, later])
    #expect(Self.joined([add, set, later], counter).count == 3)
  }

  @Test("a merged text keeps the text that its author began with")
  func originals() {
    let rules = TableRules(policy: .textMerge)
    let first = Self.operation(1, .update, [Column("a", "1")], from: [Column("a", "0")])
    let second = Self.operation(
      2, .update, [Column("a", "2"), Column("b", "y")], from: [Column("a", "1"), Column("b", "x")])
    let both = Self.joined([first, second], rules)
    #expect(both.map(\.columns) == [[Column("a", "2"), Column("b", "y")]])
    #expect(both.map(\.originals) == [[Column("a", "0"), Column("b", "x")]])
    let insert = Self.joined([Self.operation(0, .insert, [Column("a", "0")]), first], rules)
    #expect(insert.map(\.originals) == [[]])
    let unaware = Self.operation(1, .update, [Column("a", "1")])
    #expect(Self.joined([unaware, second], rules).map(\.originals) == [[Column("b", "x")]])
  }

  @Test("a write stays separate if max, min or set-union results in another value")
  func values() {
    let table: [(ConflictPolicy, Value, Value, isJoined: Bool)] = [
      (.max, 9, 5, false), (.max, 5, 9, true), (.min, 5, 9, false), (.min, 9, 5, true),
      (.max, 5, nil, false), (.min, nil, 5, true), (.setUnion, "[1]", "[2]", false),
      (.setUnion, "[1]", "[1,2]", true), (.setUnion, "[1]", nil, false),
      (.setUnion, "x", "y", true), (.ask, 1, 2, true), (.lastWriterWins, 2, 1, true),
    ]
    for (policy, first, second, isJoined) in table {
      let result = Self.joined(
        [
          Self.operation(1, .update, [Column("a", first)]),
          Self.operation(2, .update, [Column("a", second)]),
        ], TableRules(policy: policy))
      let separate = isJoined ? [] : [[Column("a", first)]]
      #expect(result.map(\.columns) == separate + [[Column("a", second)]], "\(policy)")
    }
  }

  @Test("a write with a later base stays separate if the policy depends on the base")
  func bases() {
    for policy in ConflictPolicy.allCases {
      let result = Self.joined(
        [
          Self.operation(1, .update, [Column("a", "1")], base: 3),
          Self.operation(2, .update, [Column("a", "1")], base: 4),
        ], TableRules(policy: policy))
      let decides: [ConflictPolicy] = [.serverWins, .clientWins, .textMerge, .ask]
      #expect(result.count == (decides.contains(policy) ? 2 : 1), "\(policy)")
    }
  }

  @Test("an operation's increments and original texts count towards its size")
  func bytes() {
    let plain = Self.operation(1, .update, [Column("a", 1)])
    let adding = Self.operation(1, .update, [Column("a", 1)], adds: ["a"])
    let text = String(repeating: "x", count: 1_000)
    let edit = Self.operation(1, .update, [Column("a", 1)], from: [Column("a", .text(text))])
    #expect(adding.packetBytes > plain.packetBytes)
    #expect(edit.packetBytes > plain.packetBytes + 1_000)
    for operation in [plain, adding, edit] {
      let packet = Packet(
        device: DeviceID(UniqueID(high: 1, low: 1)), dependency: nil, operations: [operation])
      #expect(packet.encoded().count <= 200 + operation.packetBytes)
    }
  }

  @Test(
    "any grouping of operations results in the same values on the server",
    arguments: [ConflictPolicy.max, .min, .counter, .setUnion, .lastWriterWins],
    1...100 as ClosedRange<UInt64>)
  func grouping(policy: ConflictPolicy, seed: UInt64) {
    var maker = JoinSamples(seed: seed, policy)
    let own = maker.operations(6)
    let others = maker.operations(3)
    let rules = TableRules(policy: policy)
    let device = DeviceID(UniqueID(high: 2, low: 2))
    func row(cuts: Set<Int>) -> [Name: Value] {
      var state = RecordState()
      let start = Self.operation(1, .insert)
      _ = state.merge(start, stamp: Stamp(time: start.time, device: device), sequence: 1)
      var sequence: SequenceNumber = 1
      func push(_ operations: [SyncOperation], _ number: UInt64) {
        let author = DeviceID(UniqueID(high: number, low: number))
        for operation in operations {
          sequence += 1
          _ = state.merge(
            operation, stamp: Stamp(time: operation.time, device: author), sequence: sequence,
            rules: rules)
        }
      }
      push(others, 3)
      var group: [SyncOperation] = []
      for (index, operation) in own.enumerated() {
        group.append(operation)
        guard cuts.contains(index) || index == own.count - 1 else { continue }
        push(Self.joined(group, rules), 1)
        group = []
      }
      return Dictionary(uniqueKeysWithValues: state.columns.map { ($0.name, $0.value) })
    }
    let apart = row(cuts: [0, 1, 2, 3, 4, 5])
    for cuts in [[], [0], [1, 3], [2], [0, 4]] as [Set<Int>] {
      #expect(row(cuts: cuts) == apart, "\(cuts.sorted())")
    }
  }
}

/// Updates of one record in the order of time, by seed.
struct JoinSamples {
  private var random: SeededGenerator
  private let policy: ConflictPolicy
  private var time: UInt64 = 10

  init(seed: UInt64, _ policy: ConflictPolicy) {
    random = SeededGenerator(seed: seed)
    self.policy = policy
  }

  /// Returns operations; those of two calls have times between each other's.
  mutating func operations(_ count: Int) -> [SyncOperation] {
    var clock = time
    time += 1
    return (0..<count).map { _ in
      clock += UInt64.random(in: 1...3, using: &random) * 10
      let names = (["a", "b"] as [Name]).filter { _ in Bool.random(using: &random) }
      let columns = names.map { Column($0, value()) }
      return OperationJoinTests.operation(
        clock, .update, columns, adds: policy == .counter ? Set(names) : [])
    }
  }

  mutating func value() -> Value {
    let number = Int64.random(in: -3...3, using: &random)
    switch policy {
    case .counter: return .integer(number)
    case .setUnion:
      return number == 0 ? nil : number == 3 ? "none" : .text("[\(number), \(number + 1)]")
    default: return number == 0 ? nil : number == 3 ? .real(0.5) : .integer(number)
    }
  }
}

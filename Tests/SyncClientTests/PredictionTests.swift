import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// A device with pending operations pulls a change, and shows the server's later decision.
@Suite("Predicting conflict decisions", .hangLimit)
struct PredictionTests {
  typealias Row = [Name: Value]

  static let own = DeviceID(UniqueID(high: 1, low: 1))
  static let other = DeviceID(UniqueID(high: 2, low: 2))

  /// A record as the server has it, with the sequence of the newest operation.
  struct Server {
    var state = RecordState()
    var sequence: SequenceNumber = 0
    let rules: TableRules

    init(_ rules: TableRules) { self.rules = rules }

    mutating func take(
      _ operations: [SyncOperation], of device: DeviceID, isAuthority: Bool = false
    ) {
      let rules = isAuthority ? rules.forAuthority : rules
      for operation in operations {
        sequence += 1
        _ = state.merge(
          operation, stamp: Stamp(time: operation.time, device: device), sequence: sequence,
          rules: rules)
      }
    }

    var row: Row? {
      guard state.isAlive else { return nil }
      return Dictionary(uniqueKeysWithValues: state.columns.map { ($0.name, $0.value) })
    }
  }

  static func operation(
    _ number: UInt64, _ kind: OperationKind, _ columns: [Column] = [], adds: Set<Name> = [],
    from originals: [Column] = [], base: SequenceNumber = 1
  ) -> SyncOperation {
    OperationJoinTests.operation(
      number, kind, columns, adds: adds, from: originals, base: base)
  }

  /// Returns the row here after operations of the user.
  static func written(_ operations: [SyncOperation], over row: Row?) -> Row? {
    operations.reduce(row) { row, operation in
      guard operation.kind != .delete else { return nil }
      var row = operation.kind == .insert ? [:] : row ?? [:]
      for column in operation.columns {
        guard operation.increments.contains(column.name), case .integer(let old) = row[column.name],
          case .integer(let amount) = column.value
        else {
          row[column.name] = column.value
          continue
        }
        row[column.name] = .integer(old &+ amount)
      }
      return row
    }
  }

  static func applied(_ effect: RowEffect, to row: Row?) -> Row? {
    switch effect {
    case .none: return row
    case .delete: return nil
    case .upsert(let columns, let isWhole, let kept):
      let own = Dictionary(uniqueKeysWithValues: kept.map { ($0.name, $0.value) })
      var result = row ?? own
      if isWhole { result = result.filter { own.keys.contains($0.key) } }
      for column in columns { result[column.name] = column.value }
      return result
    }
  }

  /// Returns the row here after the pull, and the server's after the push.
  static func meet(
    _ rules: TableRules, start: [Column], theirs: [SyncOperation], mine: [SyncOperation],
    isAuthority: Bool = false
  ) -> (here: Row?, there: Row?) {
    var server = Server(rules)
    server.take([operation(1, .insert, start, base: 0)], of: other)
    let row = written(mine, over: server.row)
    server.take(theirs, of: other)
    guard let change = server.state.since(1) else { return (row, row) }
    let effect = RemoteChange.effect(
      of: change, pending: mine, device: own, rules: isAuthority ? rules.forAuthority : rules)
    server.take(mine, of: own, isAuthority: isAuthority)
    return (applied(effect, to: row), server.row)
  }

  /// Returns the final value of one column, `a`, on both sides.
  private func decided(
    _ policy: ConflictPolicy, _ start: Value, theirs: SyncOperation, mine: SyncOperation
  ) -> Value? {
    let rules = TableRules(policy: policy)
    let rows = Self.meet(rules, start: [Column("a", start)], theirs: [theirs], mine: [mine])
    #expect(rows.here == rows.there, "\(policy)")
    return rows.here?["a"]
  }

  @Test("the row shows the server's decision about both writes under each policy")
  func policies() {
    let theirs = Self.operation(20, .update, [Column("a", 5)])
    let early = Self.operation(10, .update, [Column("a", 7)])
    let late = Self.operation(30, .update, [Column("a", 3)])
    #expect(decided(.lastWriterWins, 0, theirs: theirs, mine: early) == 5)
    #expect(decided(.lastWriterWins, 0, theirs: theirs, mine: late) == 3)
    #expect(decided(.serverWins, 0, theirs: theirs, mine: late) == 5)
    #expect(decided(.ask, 0, theirs: theirs, mine: late) == 5)
    #expect(decided(.clientWins, 0, theirs: theirs, mine: early) == 7)
    #expect(decided(.max, 0, theirs: theirs, mine: late) == 5)
    #expect(decided(.min, 9, theirs: theirs, mine: late) == 3)
    let add = Self.operation(10, .update, [Column("a", 4)], adds: ["a"])
    for policy in ConflictPolicy.allCases where policy != .min {
      #expect(decided(policy, 0, theirs: theirs, mine: add) == 9, "\(policy)")
    }
    let set = Self.operation(20, .update, [Column("a", "[2]")])
    let union = Self.operation(10, .update, [Column("a", "[1]")])
    #expect(decided(.setUnion, "[]", theirs: set, mine: union) == "[1,2]")
  }

  @Test("texts are shown merged, or as on the server if they cannot be merged")
  func texts() {
    let start: Value = "1\n2\n3\n"
    let theirs = Self.operation(
      20, .update, [Column("a", "1\n2\n3!\n")], from: [Column("a", start)])
    let apart = Self.operation(30, .update, [Column("a", "1?\n2\n3\n")], from: [Column("a", start)])
    #expect(decided(.textMerge, start, theirs: theirs, mine: apart) == "1?\n2\n3!\n")
    let same = Self.operation(30, .update, [Column("a", "1\n2\n3?\n")], from: [Column("a", start)])
    #expect(decided(.textMerge, start, theirs: theirs, mine: same) == "1\n2\n3!\n")
  }

  @Test("a remotely deleted record that was edited here stays under edit-wins only")
  func deletedThere() {
    for deletes in DeletePolicy.allCases {
      let rows = Self.meet(
        TableRules(deletes: deletes, columns: ["x": ColumnRules(policy: .max)]),
        start: [Column("a", 0), Column("b", 0)], theirs: [Self.operation(20, .delete)],
        mine: [Self.operation(10, .update, [Column("a", 1)])])
      #expect(rows.here == rows.there, "\(deletes)")
      #expect((rows.here != nil) == (deletes == .editWins), "\(deletes)")
    }
  }

  @Test("a locally deleted record stays deleted under delete-wins only, if its edit was not seen")
  func deletedHere() {
    for deletes in DeletePolicy.allCases {
      let rules = TableRules(deletes: deletes, columns: ["x": ColumnRules(policy: .max)])
      var server = Server(rules)
      server.take([Self.operation(1, .insert, [Column("a", 0)], base: 0)], of: Self.other)
      server.take([Self.operation(5, .update, [Column("a", 1)])], of: Self.other)
      let delete = Self.operation(30, .delete, base: 0)
      let effect = RemoteChange.effect(
        of: server.state, pending: [delete], device: Self.own, rules: rules)
      server.take([delete], of: Self.own)
      #expect(Self.applied(effect, to: nil) == server.row, "\(deletes)")
      #expect((server.row == nil) == (deletes == .deleteWins))
    }
  }

  @Test(
    "the row shows the server's decision for any operations",
    arguments: ConflictPolicy.allCases, 1...100 as ClosedRange<UInt64>)
  func property(policy: ConflictPolicy, seed: UInt64) {
    check(policy, seed, isAuthority: false)
  }

  @Test(
    "the row of an authority shows the server's decision for any operations",
    arguments: ConflictPolicy.allCases, 1...100 as ClosedRange<UInt64>)
  func authority(policy: ConflictPolicy, seed: UInt64) {
    check(policy, seed, isAuthority: true)
  }

  private func check(_ policy: ConflictPolicy, _ seed: UInt64, isAuthority: Bool) {
    var maker = JoinSamples(seed: seed, policy)
    let start = [Column("a", maker.value()), Column("b", maker.value())]
    let (theirs, mine) = (maker.operations(2), maker.operations(3))
    // The operations are of a device that has seen only the start.
    func seen(_ operations: [SyncOperation]) -> [SyncOperation] {
      operations.map { operation in
        var operation = operation
        operation.base = 1
        return operation
      }
    }
    let rules = TableRules(policy: policy)
    let pending = OperationJoinTests.joined(seen(mine), isAuthority ? rules.forAuthority : rules)
    for others in [seen(theirs), seen(theirs) + [Self.operation(25, .delete)]] {
      let rows = Self.meet(
        rules, start: start, theirs: others, mine: pending, isAuthority: isAuthority)
      // A column written only by this device shows the value once the server has decided.
      let told = Set(others.flatMap(\.columns).map(\.name))
      #expect(
        rows.here?.filter { told.contains($0.key) } == rows.there?.filter { told.contains($0.key) }
      )
    }
  }
}

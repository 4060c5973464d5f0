import FerryProtocol
import FerryTestSupport
import Testing

/// Laws for any operations, tried on seeded ones. A failure names the seed.
@Suite("Properties of the merge", .hangLimit)
struct RecordStatePropertyTests {
  static let seeds: ClosedRange<UInt64> = 1...400

  /// Returns operations of three devices on one record; no device uses a time twice.
  static func acts(seed: UInt64, count: Int) -> [Act] {
    var random = SeededGenerator(seed: seed)
    return (0..<count).map { index in
      let device = UInt64.random(in: 1...3, using: &random)
      // Times of all devices are mixed; the last digits keep them apart.
      let time = Int64.random(in: 1...12, using: &random) * 1_000 + Int64(index) * 10
      let names = (["a", "b", "c", "d"] as [Name]).filter { _ in random.chance(1, of: 2) }
      let columns = names.map { Column($0, .integer(Int64.random(in: 0...3, using: &random))) }
      var times: [Name: Int64] = [:]
      for (place, name) in names.enumerated() where random.chance(1, of: 4) {
        times[name] =
          max(1, time - Int64.random(in: 1...6, using: &random) * 1_000) + Int64(place)
          + 1
      }
      times = times.filter { $0.value < time }
      let base = Int64.random(in: 0...Int64(index), using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<3: return .insert(at: time, by: device, columns, times: times, base: base)
      case 3..<8: return .update(at: time, by: device, columns, times: times, base: base)
      default: return .delete(at: time, by: device, base: base)
      }
    }
  }

  @Test("any order of arrival results in the same registers", arguments: seeds)
  func anyOrder(seed: UInt64) {
    let acts = Self.acts(seed: seed, count: 5)
    let expected = RecordState(acts).registers
    for order in permutations(of: acts) {
      let registers = RecordState(order).registers
      guard registers != expected else { continue }
      Issue.record("\(order.map(\.operation)) gives \(registers), not \(expected)")
      return
    }
  }

  @Test("merging an operation again changes no register", arguments: seeds)
  func idempotence(seed: UInt64) {
    let acts = Self.acts(seed: seed, count: 8)
    #expect(RecordState(acts + acts).registers == RecordState(acts).registers)
    #expect(RecordState(acts.flatMap { [$0, $0] }).registers == RecordState(acts).registers)
  }

  @Test(
    "the changes after a cursor, applied to the row at that cursor, result in the present row",
    arguments: seeds)
  func since(seed: UInt64) {
    let states = Self.history(seed: seed)
    for now in states.indices {
      for cursor in 0...now {
        let change = states[now].since(Int64(cursor))
        let row = change.map { $0.laid(over: states[cursor].row) } ?? states[cursor].row
        #expect(row == states[now].row, "from \(cursor) to \(now)")
      }
    }
  }

  @Test(
    "an operation's author has the server's row after the next pull, even if it lost",
    arguments: seeds)
  func authors(seed: UInt64) {
    let acts = Self.acts(seed: seed, count: 12)
    let states = Self.history(seed: seed)
    for (index, act) in acts.enumerated() {
      let now = states[index + 1]
      for cursor in 0...index {
        guard let local = act.operation.done(to: states[cursor].row) else { continue }
        let change = now.since(Int64(cursor))
        let row = change.map { $0.laid(over: local.row) } ?? local.row
        #expect(row == now.row, "operation \(index + 1), pulling from \(cursor)")
      }
    }
  }

  @Test("a state is read back from its JSON unchanged", arguments: seeds)
  func roundTrip(seed: UInt64) throws {
    for state in Self.history(seed: seed) {
      let bytes = state.encoded()
      let read = try bytes.withUnsafeBytes {
        try RecordState(decoding: $0, limits: .standard)
      }
      #expect(read == state)
      #expect(read.encoded() == bytes)
    }
  }

  @Test("a state is read back from its stored form, which is sent as its JSON", arguments: seeds)
  func stored(seed: UInt64) throws {
    for state in Self.history(seed: seed) { try state.expectStored() }
  }

  @Test("a device with a cursor below wholeBelow needs exactly the stored state", arguments: seeds)
  func wholeBelow(seed: UInt64) {
    for state in Self.history(seed: seed) {
      for cursor in 0..<max(state.wholeBelow, 0) { #expect(state.since(cursor) == state) }
    }
  }

  @Test("a record that exists contains every column of its latest insert", arguments: seeds)
  func neverPartial(seed: UInt64) {
    let acts = Self.acts(seed: seed, count: 12)
    let state = RecordState(acts)
    guard state.isAlive, let inserted = state.inserted?.stamp else { return }
    let latest = acts.filter {
      $0.operation.kind == .insert && $0.device == inserted.device
        && ($0.operation.columns.map { [op = $0.operation] in op.time(of: $0.name) }.min()
          ?? $0.operation.time) == inserted.time
    }
    #expect(latest.count == 1)
    let names = Set(state.columns.map(\.name))
    for act in latest {
      #expect(names.isSuperset(of: act.operation.columns.map(\.name)))
    }
  }

  /// Returns the state after each of twelve operations, the empty one first.
  static func history(seed: UInt64) -> [RecordState] {
    var states = [RecordState()]
    for (index, act) in acts(seed: seed, count: 12).enumerated() {
      var next = states[index]
      _ = next.merge(act, at: Int64(index + 1))
      states.append(next)
    }
    return states
  }
}

extension SyncOperation {
  /// Returns the row of the author after the operation; `nil` if the operation was impossible.
  fileprivate func done(to row: [Name: Value]?) -> (row: [Name: Value]?, Void)? {
    let written = Dictionary(uniqueKeysWithValues: columns.map { ($0.name, $0.value) })
    switch (kind, row) {
    case (.insert, nil): return (written, ())
    case (.update, let row?): return (row.merging(written) { _, new in new }, ())
    case (.delete, _?): return (nil, ())
    default: return nil
    }
  }
}

/// Returns every order of the elements.
func permutations<T>(of elements: [T]) -> [[T]] {
  guard elements.count > 1 else { return [elements] }
  return elements.indices.flatMap { index in
    var rest = elements
    let first = rest.remove(at: index)
    return permutations(of: rest).map { [first] + $0 }
  }
}

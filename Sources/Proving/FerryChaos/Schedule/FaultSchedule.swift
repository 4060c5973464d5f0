import FerryConformance

/// The faults of a round, all of them known from the seed. Their effects are not: real processes
/// run as the machine lets them.
enum FaultSchedule {
  /// Between two faults, in milliseconds.
  private static let gap = 150...900
  /// PostgreSQL is left alone for so long after it was stopped, in milliseconds.
  private static let databaseRest = 6_000

  /// Returns the schedule, by time.
  static func make(
    _ kinds: [FaultKind], seed: UInt64, devices: Int, nodes: Int, milliseconds: Int
  ) -> [Fault] {
    guard !kinds.isEmpty else { return [] }
    var random = SeededRandom(seed, "faults")
    var faults: [Fault] = []
    var bag: [FaultKind] = []
    var databaseFreeAt = 0
    var at = draw(gap, &random)
    while at < milliseconds {
      let kind = draw(from: &bag, kinds, isDatabaseFree: at >= databaseFreeAt, &random)
      if kind.stopsDatabase { databaseFreeAt = at + databaseRest }
      var fault = Fault(
        ordinal: faults.count + 1, at: at, kind: kind, targets: [], lasting: 0, amount: 0)
      fault.targets = targets(of: kind, devices: devices, nodes: nodes, &random)
      (fault.lasting, fault.amount) = measure(of: kind, &random)
      faults.append(fault)
      at += draw(gap, &random)
    }
    return faults
  }

  /// Returns the next kind: each comes as often as the others, but for those that have to wait.
  private static func draw(
    from bag: inout [FaultKind], _ kinds: [FaultKind], isDatabaseFree: Bool,
    _ random: inout SeededRandom
  ) -> FaultKind {
    let isReady = { (kind: FaultKind) in isDatabaseFree || !kind.stopsDatabase }
    if bag.isEmpty {
      bag = kinds.shuffled(using: &random)
    } else if !bag.contains(where: isReady) {
      bag += kinds.filter(isReady).shuffled(using: &random)
    }
    return bag.remove(at: bag.firstIndex(where: isReady) ?? 0)
  }

  private static func draw(_ range: ClosedRange<Int>, _ random: inout SeededRandom) -> Int {
    range.lowerBound + random.below(range.count)
  }

  private static func targets(
    of kind: FaultKind, devices: Int, nodes: Int, _ random: inout SeededRandom
  ) -> [Int] {
    switch kind.targetNoun {
    case "device":
      // One, half of them, or all.
      let count = [1, max(1, devices / 2), devices][random.below(3)]
      return (0..<devices).shuffled(using: &random).prefix(count).sorted()
    case "node": return [random.below(nodes)]
    default: return []
    }
  }

  private static func measure(
    of kind: FaultKind, _ random: inout SeededRandom
  ) -> (lasting: Int, amount: Int) {
    switch kind {
    case .pauseDevice, .pauseServer, .pauseMirror, .pauseProgram: (draw(200...3_000, &random), 0)
    case .pauseBackends: (draw(200...3_000, &random), draw(1...3, &random))
    case .killDevice, .killServer, .restartDatabase, .crashDatabase, .killMirror, .killProgram:
      (draw(0...1_500, &random), 0)
    case .partition, .stallRequests, .stallAnswers, .stallDatabase, .stallMirror, .stallProgram:
      (draw(300...4_000, &random), 0)
    case .slowLink: (draw(500...4_000, &random), draw(10...250, &random))
    case .cutRequest, .cutAnswer: (draw(300...2_000, &random), draw(0...1_500, &random))
    case .killBackend, .moveDevice: (0, draw(0...1_000, &random))
    case .reset, .resetDatabase, .resetMirror, .resetProgram: (0, 0)
    }
  }
}

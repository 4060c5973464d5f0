/// Runs contestants in turns and compares medians, so other work of the machine falls on all of
/// them alike.
struct Contest {
  /// One timed run; returns a figure.
  typealias Contestant = () async throws -> Double

  /// Counted runs of each contestant.
  let rounds: Int
  /// Uncounted runs before them: caches fill, tables get their first pages.
  var warmUps = 1
  let context: BenchmarkContext

  /// Steps of the progress line for this many contestants.
  func steps(contestants: Int) -> Int { (rounds + warmUps) * contestants }

  /// Returns each contestant's median, in their order.
  func medians(_ contestants: [Contestant]) async throws -> [Double] {
    var figures = contestants.map { _ in [Double]() }
    for round in 0..<(rounds + warmUps) {
      // A B, then B A: neither always comes after the other.
      let order =
        round.isMultiple(of: 2) ? Array(contestants.indices) : contestants.indices.reversed()
      for index in order {
        try Task.checkCancellation()
        let figure = try await contestants[index]()
        if round >= warmUps { figures[index].append(figure) }
        context.advance()
      }
    }
    return figures.map { $0.percentile(50) }
  }
}

extension [Double] {
  /// Returns the value below which `percent` of them lie, by the nearest rank; 0 when there are
  /// none.
  func percentile(_ percent: Double) -> Double {
    guard !isEmpty else { return 0 }
    let sorted = sorted()
    if percent == 50, count.isMultiple(of: 2) {
      return (sorted[count / 2 - 1] + sorted[count / 2]) / 2
    }
    let rank = (percent / 100 * Double(count)).rounded(.up)
    return sorted[Swift.max(0, Swift.min(count - 1, Int(rank) - 1))]
  }
}

/// Measures elapsed time.
struct Stopwatch {
  private let start = ContinuousClock.now

  var seconds: Double { (ContinuousClock.now - start) / .seconds(1) }
  var milliseconds: Double { seconds * 1_000 }
}

/// Counts of observations below fixed bounds, as Prometheus has them.
struct Histogram: Sendable, Equatable {
  /// Upper bounds, ascending; values above the last one count as infinite.
  let bounds: [Double]
  private(set) var counts: [Int]
  private(set) var sum = 0.0

  init(bounds: [Double]) {
    self.bounds = bounds
    counts = [Int](repeating: 0, count: bounds.count + 1)
  }

  /// Observations in all.
  var count: Int { counts.reduce(0, +) }

  mutating func observe(_ value: Double) {
    counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
    sum += value
  }
}

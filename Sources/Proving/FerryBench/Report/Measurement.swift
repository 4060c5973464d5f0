import FerryCommandLine

/// A number with a unit.
struct Amount: Sendable, Equatable {
  /// The unit of a value, and the notation.
  enum Unit: Sendable, Equatable {
    /// Things a second, by their plural name.
    case perSecond(String)
    /// Time for one of something.
    case microseconds(per: String)
    case milliseconds
    case bytes
    /// Things, by their plural name.
    case count(String)
    /// Hundredths of the whole.
    case percent
  }

  let value: Double
  let unit: Unit

  init(_ value: Double, _ unit: Unit) {
    self.value = value
    self.unit = unit
  }

  var text: String {
    switch unit {
    case .perSecond(let things): "\(Int(value.rounded()).grouped) \(things)/s"
    case .microseconds(let thing): "\(value.rounded(to: 2)) µs/\(thing)"
    case .milliseconds: "\(value.rounded(to: 1)) ms"
    case .bytes: ByteSize(bytes: Int(value)).text
    case .count(let things): "\(Int(value).grouped) \(things)"
    case .percent: "\(value.rounded(to: 3)) %"
    }
  }

  /// The unit by itself, for JSON.
  var unitName: String {
    switch unit {
    case .perSecond(let things): "\(things)/s"
    case .microseconds(let thing): "µs/\(thing)"
    case .milliseconds: "ms"
    case .bytes: "bytes"
    case .count(let things): things
    case .percent: "%"
    }
  }
}

/// The target of a figure.
enum Target: Sendable, Equatable {
  /// The figure over the raw limit.
  case ratioAtLeast(Double)
  case ratioAtMost(Double)
  /// The figure itself, in the given unit.
  case atLeast(Double)
  case atMost(Double)
}

/// One figure, with the raw limit of the same run if there is one.
struct Measurement: Sendable, Equatable {
  let name: String
  let figure: Amount
  var raw: Amount?
  var target: Target?
  /// Further observations, such as a tail of latencies.
  var notes: [String] = []

  /// The figure over the raw limit.
  var ratio: Double? {
    raw.flatMap { $0.value > 0 ? figure.value / $0.value : nil }
  }

  /// True if the target is reached; `nil` when there is none.
  var holds: Bool? {
    switch target {
    case nil: nil
    case .ratioAtLeast(let bound): (ratio ?? 0) >= bound
    case .ratioAtMost(let bound): (ratio ?? .infinity) <= bound
    case .atLeast(let bound): figure.value >= bound
    case .atMost(let bound): figure.value <= bound
    }
  }

  var targetText: String {
    switch target {
    case nil: ""
    case .ratioAtLeast(let bound): "ratio ≥ \(bound)"
    case .ratioAtMost(let bound): "ratio ≤ \(bound)"
    case .atLeast(let bound): "≥ \(Amount(bound, figure.unit).text)"
    case .atMost(let bound): "≤ \(Amount(bound, figure.unit).text)"
    }
  }
}

extension Double {
  /// Rounds to at most this many decimals.
  func rounded(to decimals: Int) -> Double {
    let scale = (0..<decimals).reduce(1.0) { scale, _ in scale * 10 }
    return (self * scale).rounded() / scale
  }
}

/// The progress of a command or a part of it, as a progress bar shows it.
package struct ProgressState: Sendable, Equatable {
  /// The unit of progress.
  package enum Unit: Sendable, Equatable {
    /// Things, by their plural name: `records`.
    case items(String)
    case bytes
  }

  /// The current work: `pull`.
  package var label: String
  /// The unit of progress.
  package var unit: Unit
  /// Done so far.
  package var completed: Int64
  /// The total amount; `nil` if it is not known.
  package var total: Int64?
  /// Time since the start.
  package var elapsed: Duration
  /// Units a second; `nil` if it is not known yet.
  package var rate: Double?

  /// Creates a state to render.
  package init(
    label: String, unit: Unit, completed: Int64 = 0, total: Int64? = nil,
    elapsed: Duration = .zero, rate: Double? = nil
  ) {
    self.label = label
    self.unit = unit
    self.completed = completed
    self.total = total
    self.elapsed = elapsed
    self.rate = rate
  }

  /// The finished fraction, 0…1; `nil` if there is no total. A total of 0 counts as finished.
  package var fraction: Double? {
    total.map { $0 <= 0 ? 1 : min(1, max(0, Double(completed) / Double($0))) }
  }

  /// Time to the end at the present rate, up to 100 hours; `nil` if it is not known.
  package var remaining: Duration? {
    guard let total, let rate, rate > 0 else { return nil }
    let seconds = Double(max(0, total - completed)) / rate
    return seconds < 360_000 ? .seconds(seconds) : nil
  }
}

extension ProgressState {
  /// The parts after the bar, the most important first: they are dropped from the end when the
  /// terminal is narrow.
  var notes: [String] {
    var notes: [String] = []
    if let fraction { notes.append("\(Int(fraction * 100))%".padded(toWidth: 4, leading: true)) }
    notes.append(amounts)
    if let rate, rate.isFinite, rate >= 0, rate < 1e15 { notes.append("\(amount(Int64(rate)))/s") }
    if total == nil {
      notes.append(elapsed.clockText)
    } else if let remaining, completed < total ?? 0 {
      notes.append("\(remaining.clockText) left")
    }
    return notes
  }

  private var amounts: String {
    let upTo = total.map { "/\(amount($0))" } ?? ""
    return switch unit {
    case .items(let name): "\(amount(completed))\(upTo) \(name)"
    case .bytes: amount(completed) + upTo
    }
  }

  private func amount(_ value: Int64) -> String {
    switch unit {
    case .items: value.grouped
    case .bytes: ByteSize(bytes: Int(value)).text
    }
  }
}

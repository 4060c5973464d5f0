import FerryCommandLine

/// All measurements of a run, as they are printed.
struct BenchReport: Sendable {
  let isQuick: Bool
  var measurements: [Measurement] = []

  /// True if no target is missed.
  var holds: Bool { measurements.allSatisfy { $0.holds != false } }

  /// Returns a table, further observations, and the ratios as bars.
  func lines(width: Int) -> [String] {
    var lines = table.lines(width: nil)
    let notes = measurements.filter { !$0.notes.isEmpty }
    if !notes.isEmpty { lines.append("") }
    lines += notes.map { "\($0.name): \($0.notes.joined(separator: "; "))" }
    let bars = measurements.compactMap { measurement in
      measurement.ratio.map {
        BarPlot.Bar(measurement.name, $0, note: "\($0.rounded(to: 2))")
      }
    }
    if !bars.isEmpty {
      lines += ["", "Ferry over the raw limit"] + BarPlot(bars).lines(width: min(width, 100))
    }
    return lines + ["", verdict]
  }

  var json: JSONText {
    .object([
      ("quick", .bool(isQuick)), ("holds", .bool(holds)),
      ("measurements", .array(measurements.map(\.json))),
    ])
  }

  private var table: TextTable {
    var table = TextTable([
      TextTable.Column("BENCHMARK"), TextTable.Column("FERRY", .right),
      TextTable.Column("RAW LIMIT", .right), TextTable.Column("RATIO", .right),
      TextTable.Column("TARGET"), TextTable.Column("HOLDS"),
    ])
    for measurement in measurements {
      table.append([
        measurement.name, measurement.figure.text, measurement.raw?.text ?? "–",
        measurement.ratio.map { "\($0.rounded(to: 2))" } ?? "–", measurement.targetText,
        measurement.holds.map { $0 ? "yes" : "NO" } ?? "",
      ])
    }
    return table
  }

  private var verdict: String {
    let judged = measurements.compactMap(\.holds)
    let reached = judged.count { $0 }
    let size = isQuick ? " in a quick run, which is only an estimate" : ""
    return "\(reached) of \(judged.count) targets reached\(size)"
  }
}

extension Measurement {
  fileprivate var json: JSONText {
    .object([
      ("name", .string(name)), ("figure", .double(figure.value)),
      ("unit", .string(figure.unitName)),
      ("raw", raw.map { .double($0.value) } ?? .null),
      ("ratio", ratio.map { .double($0) } ?? .null), ("target", .string(targetText)),
      ("holds", holds.map { .bool($0) } ?? .null),
      ("notes", .array(notes.map { .string($0) })),
    ])
  }
}

import FerryCommandLine

/// Rounds as they are printed together.
struct MatrixReport: Sendable {
  var rounds: [RoundReport] = []

  var holds: Bool { rounds.allSatisfy(\.holds) }

  func lines(width: Int, tableWidth: Int?) -> [String] {
    var lines = table.lines(width: tableWidth)
    let totals = FaultKind.allCases.compactMap { kind -> BarPlot.Bar? in
      let count = rounds.reduce(0) { $0 + ($1.injected[kind] ?? 0) }
      return count > 0 ? BarPlot.Bar(kind.rawValue, Double(count), note: "\(count)") : nil
    }
    if !totals.isEmpty {
      lines += ["", "Faults injected"] + BarPlot(totals).lines(width: min(width, 80))
    }
    for round in rounds where !round.holds { lines += [""] + round.failureLines }
    return lines + ["", verdict]
  }

  var json: JSONText {
    .object([("holds", .bool(holds)), ("rounds", .array(rounds.map(\.json)))])
  }

  private var table: TextTable {
    var table = TextTable([
      TextTable.Column("ROUND", .right), TextTable.Column("NEMESIS"),
      TextTable.Column("SEED", .right), TextTable.Column("TRANSACTIONS", .right),
      TextTable.Column("KILLED", .right), TextTable.Column("REFUSED", .right),
      TextTable.Column("READS", .right), TextTable.Column("FAULTS", .right),
      TextTable.Column("DRAINED AFTER", .right), TextTable.Column("VERDICT"),
    ])
    for round in rounds {
      let figures = round.figures
      table.append([
        "\(round.plan.number)", round.plan.label, "\(round.plan.seed)",
        "\(figures.committed + figures.programCommitted)", "\(figures.killed)",
        "\(figures.refused)", "\(figures.reads)",
        "\(round.faultCount)", round.drainText,
        round.holds ? "passed" : "FAILED (\(round.violations.count))",
      ])
    }
    return table
  }

  private var verdict: String {
    let transactions = rounds.reduce(0) {
      $0 + $1.figures.committed + $1.figures.programCommitted
    }
    let operations = rounds.reduce(0) { $0 + $1.figures.operations }
    let slowest = rounds.compactMap(\.drain).max().map {
      "; the slowest drain took \(($0 / .seconds(1)).rounded(to: 1)) s"
    }
    return "\(rounds.count { $0.holds }) of \(rounds.count) rounds passed, "
      + "\(transactions.grouped) transactions, \(operations.grouped) operations" + (slowest ?? "")
  }
}

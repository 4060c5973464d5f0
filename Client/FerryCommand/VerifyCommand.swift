import Ferry
import FerryCommandLine

/// `ferry verify`: compares the replica with the server.
enum VerifyCommand {
  static let verify = CommandSpec(
    "verify", summary: "Compare this replica with the server, and list the differences.",
    discussion: """
      Pulls, reads every row of the tracked tables, and compares hash trees with the server from \
      their roots down, so that small differences need little traffic. Records with changes that \
      the server has not confirmed yet are skipped. With --repair, rows that differ get the \
      server's values, and pending changes stay. `ferry conflicts` lists the former values of the \
      rows, and `ferry resolve ID --keep local` sets one again.

      Records that the tables here reject are counted with their reasons, and not compared.

      Ends with status 4 if rows differ and were not repaired, or if rejected records need you.
      """,
    flags: [FlagSpec("repair", help: "Set rows that differ to the server's values.")],
    examples: [ExampleSpec("Look and repair", "ferry verify --repair")]
  ) { arguments in
    let replica = try await FerryCommand.openForServer(arguments)
    let asJSON = arguments.flag("json")
    let progress = ProgressBar("comparing", unit: .items("rows"))
    let report: VerifyReport
    do {
      report = try await replica.verify(repair: arguments.flag("repair")) {
        progress.update(completed: Int64($0.completed), total: Int64($0.total))
      }
    } catch {
      progress.finish()
      throw error
    }
    progress.finish()
    let output = TextOutput.standardOutput
    if asJSON {
      for difference in report.differences { try output.line(difference.json.text) }
      try output.line(report.json.text)
    } else {
      try output.lines(report.differenceLines + report.lines)
    }
    let needsUser = report.deferred > report.keptLocal
    guard !report.isEqual else { return needsUser ? .needsUser : .done }
    try SyncCommands.reportFaults(report.faults)
    let count = report.differences.filter { !$0.isRepaired }.count
    guard count > 0 else { return .needsUser }
    let migrated = BoundedList.names(report.unreconciled.map(\.text))
    guard migrated.isEmpty else {
      try TextOutput.standardError.lines([
        "ferry: \(count.counted("record")) \(count == 1 ? "differs" : "differ") from the server",
        "  why: \(migrated): the table was created again or has new columns".escapedForTerminal,
        "  next: `ferry sync` records these changes and sends them",
      ])
      return .needsUser
    }
    try TextOutput.standardError.lines([
      "ferry: \(count.counted("record")) \(count == 1 ? "differs" : "differ") from the server",
      "  why: another program wrote to the tables, or the file or the server was damaged",
      "  next: `ferry verify --repair` sets the server's values",
    ])
    return .needsUser
  }
}

extension RecordDifference {
  fileprivate var word: String {
    switch kind {
    case .missingHere: "missing here"
    case .missingThere: "missing there"
    case .different: "different"
    }
  }

  fileprivate var columns: [ColumnDifference] {
    switch kind {
    case .missingHere: []
    case .missingThere(let row):
      row.map { ColumnDifference(column: $0.name, here: $0.value, there: .null) }
    case .different(let columns): columns
    }
  }

  fileprivate var text: String {
    let values = columns.map {
      "\($0.column): \(Presentation.cell($0.here)) here, \(Presentation.cell($0.there)) there"
    }
    let detail = values.isEmpty ? "" : " (\(values.joined(separator: "; ")))"
    return ("\(key.table)/\(key.record): \(word)\(detail)" + (isRepaired ? ", repaired" : ""))
      .escapedForTerminal
  }

  fileprivate var json: JSONText {
    .object([
      ("table", .string(key.table.text)), ("record", .string(key.record.text)),
      ("difference", .string(word)),
      (
        "columns",
        .array(
          columns.map {
            .object([
              ("column", .string($0.column.text)), ("here", Presentation.json($0.here)),
              ("there", Presentation.json($0.there)),
            ])
          })
      ), ("repaired", .bool(isRepaired)),
    ])
  }
}

extension VerifyReport {
  fileprivate var lines: [String] {
    var lines = [counted]
    if pending > 0 { lines.append("skipped, with pending changes: \(pending.counted("record"))") }
    if changedMeanwhile > 0 {
      lines.append("\(changedMeanwhile.counted("record")) changed during the comparison")
    }
    if deferred > 0 {
      lines.append(
        "not compared: \(deferred.counted("record")) that \(deferred == 1 ? "waits" : "wait") here; "
          + "`ferry to-apply` lists \(deferred == 1 ? "it" : "them")")
    }
    lines += waiting.map { "\($0.count.counted("record")): \($0.reason)".escapedForTerminal }
    lines += BoundedList.lines(untracked) { table in
      "\(table.table) is not tracked here: not compared, \(table.serverRecords.counted("record"))"
        .escapedForTerminal
    } rest: {
      "\($0.counted("more table")) \($0 == 1 ? "is" : "are") not tracked here; "
        + "`ferry verify --json` lists them"
    }
    return lines
  }

  /// Differences with lines of their own; `--json` lists all.
  private static let differencesShown = 1_000

  fileprivate var differenceLines: [String] {
    BoundedList.lines(differences, shown: Self.differencesShown, \.text) {
      "and \($0.counted("more record")); `ferry verify --json` lists all"
    }
  }

  /// The findings in one line.
  private var counted: String {
    let repaired = differences.filter(\.isRepaired).count
    let found =
      differences.isEmpty
      ? deferred == 0 ? "equal" : "equal as far as compared"
      : "\(differences.count.counted("record")) \(differences.count == 1 ? "differs" : "differ")"
        + (repaired > 0 ? ", \(repaired.grouped) repaired" : "")
    return "\(rowCount.counted("row")) of \(tables.count.counted("table")) at "
      + "\(cursor.applied.grouped): "
      + found
  }

  fileprivate var json: JSONText {
    .object([
      ("equal", .bool(isEqual)), ("cursor", .string(cursor.description)), ("rows", .int(rowCount)),
      ("differing", .int(differences.count)),
      ("repaired", .int(differences.filter(\.isRepaired).count)), ("pending", .int(pending)),
      ("deferred", .int(deferred)),
      (
        "waiting",
        .array(
          waiting.map {
            .object([("reason", .string($0.reason)), ("records", .int($0.count))])
          })
      ),
      ("changedMeanwhile", .int(changedMeanwhile)), ("bytesSent", .int(bytesSent)),
      ("bytesReceived", .int(bytesReceived)),
      (
        "tables",
        .array(
          tables.map {
            .object([
              ("table", .string($0.table.text)), ("rows", .int($0.rows)),
              ("serverRecords", .int($0.serverRecords)), ("differing", .int($0.differing)),
            ])
          })
      ),
      (
        "untracked",
        .array(
          untracked.map {
            .object([("table", .string($0.table.text)), ("serverRecords", .int($0.serverRecords))])
          })
      ),
    ])
  }
}

import Ferry
import FerryCommandLine

/// Commands that show a replica: `ferry status`, `pending`, `to-apply` and `log`.
enum LookCommands {
  static let limit = OptionSpec(
    "limit", short: "n", value: "COUNT", help: "The largest number of entries.",
    kind: .integer(1...1_000_000), default: "50")

  static let status = CommandSpec(
    "status", summary: "Show the state of the replica.",
    discussion: """
      pending: operations that the server has not confirmed. to apply: changes pulled but not \
      applied. conflicts: values that lost a conflict and are kept. deferred: records that this \
      replica's tables reject. quarantined: operations that were rejected or overruled, with the \
      operations that depend on them. unsent: records of upload-only tables with changes that \
      could not be sent. buffered: operations that wait on the server for an earlier packet.

      The clock's offset is the server's clock minus this machine's. recovered: the last time that \
      this replica or its server was found to be restored from a backup or copied.
      """
  ) { arguments in
    let replica = try await FerryCommand.open(arguments)
    let (status, tables) = (try await replica.status(), try await replica.trackedLocals())
    if arguments.flag("json") {
      try TextOutput.standardOutput.line(status.json(tables).text)
    } else {
      try TextOutput.standardOutput.lines(status.lines(tables))
    }
    return .done
  }

  static let pending = CommandSpec(
    "pending", summary: "List operations that the server has not confirmed, oldest first.",
    options: [limit]
  ) { arguments in
    let count = try arguments.integer("limit", in: 1...1_000_000)
    let replica = try await FerryCommand.open(arguments)
    let pending = try await replica.operations.pending(limit: count)
    let short = try await replica.operations.identifiers()
    try Presentation.print(
      ["time", "kind", "table", "record", "data", "operation", "dependency", "transaction"],
      pending.map { item in
        let operation = item.operation
        let time = Presentation.time(operation.time.milliseconds)
        let shown = Presentation.values(of: operation, from: item.former)
        return [
          (time, .string(time)), (operation.kind.rawValue, .string(operation.kind.rawValue)),
          (operation.key.table.text, .string(operation.key.table.text)),
          BatchCommand.recordCell(operation),
          (Presentation.cell(of: operation, from: item.former), Presentation.json(shown)),
          (short.text(for: operation.id.value), .string("\(operation.id)")),
          item.dependency.map { (short.text(for: $0.value), .string("\($0)")) } ?? ("-", .null),
          ("\(item.group)", .int(item.group)),
        ]
      }, asJSON: arguments.flag("json"))
    if !pending.isEmpty { try notice(ofUnsendable: try await replica.status()) }
    return .done
  }

  /// Reports that the server accepts no operation of the present token, and the ways out.
  private static func notice(ofUnsendable status: ReplicaStatus) throws {
    guard let reason = status.writesRefused else { return }
    try TextOutput.standardError.lines([
      "ferry: these operations are never sent with the present token",
      "  why: \(reason)".escapedForTerminal,
      "  next: ask an administrator for a token with the role writer, and give it to `ferry init "
        + "--token TOKEN`; or remove each of them with `ferry undo OPERATION`, the newest first",
    ])
  }

  static let toApply = CommandSpec(
    "to-apply", summary: "List changes that were pulled and are not applied, with the reason.",
    options: [limit]
  ) { arguments in
    let count = try arguments.integer("limit", in: 1...1_000_000)
    let waiting = try await FerryCommand.open(arguments).waitingChanges(limit: count)
    try Presentation.print(
      ["operation", "dependency", "time", "kind", "table", "record", "reason", "data"],
      waiting.map { change in
        let time = Presentation.time(change.time.milliseconds)
        return [
          ("\(change.sequence)", .int(change.sequence)),
          change.dependency.map { ("\($0)", .int($0)) } ?? ("-", .null), (time, .string(time)),
          (change.kind.rawValue, .string(change.kind.rawValue)),
          (change.key.table.text, .string(change.key.table.text)),
          (change.key.record.text, .string(change.key.record.text)),
          (change.reason, .string(change.reason)),
          (Presentation.cell(change.columns), Presentation.json(change.columns)),
        ]
      }, asJSON: arguments.flag("json"))
    return .done
  }

  static let log = CommandSpec(
    "log", summary: "Show the log: syncs, and values that lost a conflict, newest first.",
    discussion: """
      If two devices write one column concurrently, the later write wins. The other value is \
      listed here with both writers; see also `ferry conflicts`.
      """,
    options: [limit]
  ) { arguments in
    let count = try arguments.integer("limit", in: 1...1_000_000)
    let replica = try await FerryCommand.open(arguments)
    var entries = try await replica.log(limit: count).map { entry in
      LoggedLine(
        at: entry.at, event: entry.event, detail: entry.detail,
        json: [("detail", .string(entry.detail))])
    }
    let names = try await replica.deviceNames()
    let schema = try await replica.pulledSchema()
    entries += try await replica.conflicts(limit: count).map { LoggedLine($0, names, schema) }
    entries.sort { $0.at > $1.at }
    if arguments.flag("json") {
      try TextOutput.standardOutput.lines(
        entries.prefix(count).map { entry in
          let time = Presentation.time(entry.at)
          return JSONText.object(
            [("at", .string(time)), ("event", .string(entry.event))] + entry.json
          ).text
        })
    } else {
      try TextOutput.standardOutput.lines(
        entries.prefix(count).map {
          "\(Presentation.time($0.at))  \($0.event.padding(to: 9))  \($0.detail.escapedForTerminal)"
        })
    }
    return .done
  }
}

/// One line of `ferry log`.
struct LoggedLine {
  let at: Int64
  let event: String
  let detail: String
  let json: [(String, JSONText)]

  init(at: Int64, event: String, detail: String, json: [(String, JSONText)]) {
    self.at = at
    self.event = event
    self.detail = detail
    self.json = json
  }

  /// - Parameter schema: the rules of the space, which name the counters.
  init(_ kept: KeptConflict, _ names: DeviceNames, _ schema: SpaceSchema) {
    let conflict = kept.conflict
    func who(_ device: DeviceID, _ isOwn: Bool) -> String {
      if isOwn { return "this device" }
      let isIdentifier = names[device] == nil && device != .server
      return isIdentifier ? "device \(device)" : names.label(for: device)
    }
    let place =
      "\(kept.key.table) \(kept.key.record)" + (conflict.column.map { " \($0)" } ?? "")
    let value = Presentation.cell(ofLost: conflict, in: kept.key.table, schema)
    let lost = conflict.column == nil ? "a change of the record" : "'\(value)'"
    self.init(
      at: kept.noticedAt, event: "conflict",
      detail: "\(place): \(lost) of \(who(conflict.loser.device, kept.isLosersOwn)) "
        + "(\(Presentation.time(conflict.loser.time.milliseconds))) " + Self.against(kept, who),
      json: [
        ("table", .string(kept.key.table.text)), ("record", .string(kept.key.record.text)),
        ("column", .string(orNull: conflict.column?.text)),
        ("lost", Presentation.json(conflict.lost)),
        ("loser", .string("\(conflict.loser.device)")),
        ("loserName", .string(orNull: names[conflict.loser.device])),
        ("loserTime", .string(Presentation.time(conflict.loser.time.milliseconds))),
        ("winner", .string(orNull: kept.hasWinner ? "\(conflict.winner.device)" : nil)),
        ("winnerName", .string(orNull: kept.hasWinner ? names[conflict.winner.device] : nil)),
        (
          "winnerTime",
          .string(
            orNull: kept.hasWinner
              ? Presentation.time(conflict.winner.time.milliseconds) : nil)
        ),
        ("operation", .string("\(kept.operation)")),
        ("holder", .string(orNull: kept.holder?.text)),
      ])
  }
}

extension KeptConflict {
  /// False if no write has won: the record waits, or waited, for a unique value of another one.
  var hasWinner: Bool { conflict.winner.time > .zero }
}

extension LoggedLine {
  /// Describes the winning side.
  private static func against(
    _ kept: KeptConflict, _ who: (DeviceID, Bool) -> String
  ) -> String {
    if let holder = kept.holder { return "waits for record \(holder), which has it here" }
    guard kept.hasWinner else { return "waited for a value of another record" }
    let winner = kept.conflict.winner
    return "lost to \(who(winner.device, kept.isWinnersOwn)) "
      + "(\(Presentation.time(winner.time.milliseconds)))"
  }
}

extension ReplicaStatus {
  /// - Parameter tables: the tracked tables by their names in the file, as commands name them.
  fileprivate func json(_ tables: [Name]) -> JSONText {
    .object([
      ("device", .string("\(device)")), ("name", .string(orNull: deviceName)),
      ("space", .string(orNull: server?.space.value)),
      ("server", .string(orNull: server?.url)), ("tables", .array(tables.map { .string($0.text) })),
      ("pending", .int(pending)), ("toApply", .int(toApply)), ("conflicts", .int(conflicts)),
      ("questions", .int(questions)),
      ("deferred", .int(deferred)), ("keptLocal", .int(keptLocal)),
      ("quarantined", .int(quarantined)), ("unsent", .int(unsent)),
      ("buffered", .int(buffered)),
      ("cursor", .string(orNull: cursor?.description)), ("head", .int(head)),
      ("lastSync", .string(orNull: lastSync.map { Presentation.time($0) })),
      ("writesRefused", .string(orNull: writesRefused)), ("clockOffset", .int(clockOffset)),
      ("warnings", .array(warnings.map { .string($0) })),
      (
        "tableFaults",
        .array(
          tableFaults.map {
            .object([("table", .string($0.local.text)), ("reason", .string($0.reason))])
          })
      ),
      (
        "lastRecovery",
        lastRecovery.map { entry in
          .object([
            ("time", .string(Presentation.time(entry.at))), ("event", .string(entry.event)),
            ("detail", .string(entry.detail)),
          ])
        } ?? .null
      ),
    ])
  }

  private var clockText: String {
    if clockOffset == 0 { return "the same as the server's" }
    return "\(clockOffset.magnitude) ms \(clockOffset > 0 ? "behind" : "ahead of") the server"
  }

  fileprivate func lines(_ tables: [Name]) -> [String] {
    let behind = head - (cursor?.applied ?? 0)
    let facts: [(String, String)] = [
      ("device", "\(device)"), ("name", deviceName ?? "none yet: run `ferry name`"),
      ("space", server.map { "\($0.space) on \($0.url)" } ?? "none yet: run `ferry init`"),
      (
        "tables",
        tables.isEmpty
          ? "none yet: run `ferry track`"
          : BoundedList.names(tables.map(\.text), shown: BoundedList.listed)
      ),
      (
        "pending",
        pending.grouped
          + (writesRefused.map { pending > 0 ? ", never sent with this token: \($0)" : "" } ?? "")
      ),
      ("to apply", toApply.grouped),
      (
        "conflicts",
        conflicts.grouped + (questions > 0 ? ", \(questions.grouped) to decide" : "")
      ),
      (
        "deferred",
        deferred.grouped + (keptLocal > 0 ? ", \(keptLocal.grouped) by your answers" : "")
      ), ("quarantined", quarantined.grouped),
      ("unsent", unsent.grouped), ("buffered", buffered.grouped),
      (
        "applied",
        "\((cursor?.applied ?? 0).grouped) of \(head.grouped)"
          + (behind > 0 ? " (\(behind.grouped) behind)" : "")
      ),
      ("last sync", lastSync.map { Presentation.time($0) } ?? "never"),
      ("clock", clockText),
      (
        "recovered",
        lastRecovery.map { "\(Presentation.time($0.at)): \($0.detail)" } ?? "never"
      ),
    ]
    let shown = tableFaults.prefix(BoundedList.listed)
    var faults = shown.map { ("not synced", "\($0.local): \($0.reason)") }
    if shown.count < tableFaults.count {
      faults.append(("not synced", "\((tableFaults.count - shown.count).counted("more table"))"))
    }
    return (facts + faults + warnings.map { ("warning", $0) }).map {
      "\($0.0.padding(to: 12))  \($0.1)"
    }
  }
}

extension String {
  /// Returns the text padded with blanks.
  fileprivate func padding(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}

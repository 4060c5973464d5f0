import FerryCommandLine
import FerryMirror

/// A mirror's status for people and for programs.
extension Mirror.Status {
  /// A person has something to do if programs' writes do not reach the space, or if rows with one
  /// unique value wait for an answer.
  var exit: ExitStatus {
    stops.isEmpty && fault.isEmpty && views.isEmpty && unsentCount == 0 && waiting == 0
      ? .done : .needsUser
  }

  /// The line of `verify` about rows that one side cannot hold; `nil` if there are none.
  var leftText: String? {
    var parts: [String] = []
    if unsentCount > 0 { parts.append("\(unsentCount.counted("row")) unsent") }
    if waiting > 0 { parts.append("\(waiting.counted("row")) deferred") }
    if !views.isEmpty { parts.append("\(views.count.counted("view")) failing") }
    return parts.isEmpty
      ? nil : "\(parts.joined(separator: ", ")): see `ferryd mirror status \(name)`"
  }

  private var stopped: MirrorStopped? {
    stops.isEmpty ? nil : MirrorStopped(name: name, stops: stops)
  }

  private var captureText: String {
    switch capture {
    case .log: "from PostgreSQL's log"
    case .triggers:
      captureReason.map { "by triggers: PostgreSQL's log cannot be read: \($0)" } ?? "by triggers"
    }
  }

  /// The way to capture, and the kept log. The mirrors of a group have the same.
  var captureLines: [String] {
    var lines = ["capture    \(captureText)"]
    guard let log else { return lines }
    lines.append(
      "log        " + (log.bytes.map { "\($0.grouped) bytes are kept" } ?? "the slot is lost"))
    if log.isUnlimited {
      lines.append("warning    without max_slot_wal_keep_size, the log may fill the disk")
    }
    return lines
  }

  var lines: [String] {
    var lines = [
      "space      \(space)",
      "tables     have change \(applied.grouped) of \(head.grouped)",
      "role       \(role.name)",
    ]
    if let warning = role.warning { lines.append("warning    \(warning)") }
    lines += captureLines
    lines += stops.map { "stopped    \($0)" }
    if let wayOut = stopped?.wayOut { lines.append("next       \(wayOut)") }
    if !fault.isEmpty { lines.append("fault      \(fault)") }
    lines += views.map { "fault      view \($0.name): \($0.reason)" }
    lines += unfilled.map {
      "waiting    view \($0): never compared yet, so devices keep the rows that the space has"
    }
    for table in adopted {
      let rows =
        table.isDone
        ? table.rows.counted("row")
        : "\(table.rows.grouped) of about \(table.total.counted("row"))"
      lines.append("adopted    \(table.table): \(rows)")
    }
    let verb = captured == 1 ? "is on its" : "are on their"
    lines.append("captured   \(captured.counted("write")) of programs \(verb) way to the space")
    lines.append("deferred   \(Self.shown(deferred.count, of: deferredCount))")
    lines += deferred.map(\.line)
    lines.append(
      "unsent     \(Self.shown(unsent.count, of: unsentCount)) as in the tables, and not so in the "
        + "space")
    return lines + unsent.map(\.line)
  }

  /// Returns the number of all rows, and of those in a shorter list.
  private static func shown(_ listed: Int, of count: Int64) -> String {
    guard Int64(listed) < count else { return count.counted("row") }
    return "\(listed.grouped) of \(count.counted("row")) (`--limit \(count)` lists all)"
  }

  var json: JSONText {
    .object([
      ("mirror", .string(name)), ("space", .string(space)),
      ("applied", .string(String(applied))), ("head", .string(String(head))),
      ("captured", .string(String(captured))), ("capture", .string(capture.rawValue)),
      ("captureReason", .string(orNull: captureReason)),
      ("role", .string(role.name)), ("warning", .string(orNull: role.warning)),
      ("stopped", .array(stops.map { .string($0.description) })),
      ("log", .string(orNull: log?.bytes.map { String($0) })),
      ("fault", .string(orNull: fault.isEmpty ? nil : fault)),
      (
        "views",
        .array(
          views.map { .object([("view", .string($0.name)), ("reason", .string($0.reason))]) })
      ),
      ("waitingViews", .array(unfilled.map { .string($0) })),
      ("next", .string(orNull: stopped?.wayOut)),
      ("deferredCount", .string(String(deferredCount))),
      ("deferred", .array(deferred.map(\.json))),
      (
        "adopted",
        .array(
          adopted.map { table in
            .object([
              ("table", .string(table.table)), ("rows", .string(String(table.rows))),
              ("total", .string(String(table.total))), ("done", .bool(table.isDone)),
            ])
          })
      ),
      ("unsentCount", .string(String(unsentCount))),
      ("unsent", .array(unsent.map(\.json))),
    ])
  }
}

extension DeferredRow {
  fileprivate var line: String {
    "  \(table) \(key.map { $0 ?? "NULL" }.joined(separator: ", ")): \(reason)"
  }

  fileprivate var json: JSONText {
    .object([
      ("table", .string(table)), ("key", .array(key.map { $0.map { .string($0) } ?? .null })),
      ("reason", .string(reason)),
    ])
  }
}

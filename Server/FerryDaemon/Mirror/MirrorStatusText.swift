import FerryCommandLine
import FerryMirror

/// A mirror's status for people and for programs.
extension Mirror.Status {
  var lines: [String] {
    var lines = [
      "space      \(space)",
      "tables     have change \(applied) of \(head)",
      "role       \(role.name)",
    ]
    if let warning = role.warning { lines.append("warning    \(warning)") }
    for table in adopted {
      let rows = table.isDone ? "\(table.rows)" : "\(table.rows) of about \(table.total)"
      lines.append("adopted    \(table.table): \(rows) rows")
    }
    lines.append("captured   \(captured) writes of programs are on their way to the space")
    lines.append("deferred   \(deferred.count) rows")
    lines += deferred.map(\.line)
    guard !adopted.isEmpty else { return lines }
    lines.append(
      "unsent     \(unsentCount.counted("row")) only in the tables, and not in the space")
    return lines + unsent.map(\.line)
  }

  func json(_ name: String) -> JSONText {
    .object([
      ("mirror", .string(name)), ("space", .string(space)),
      ("applied", .string(String(applied))), ("head", .string(String(head))),
      ("captured", .string(String(captured))),
      ("role", .string(role.name)), ("warning", .string(orNull: role.warning)),
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

import FerryCommandLine
import FerrySyncServer

extension SpaceCommands {
  static let usage = CommandSpec(
    "usage", summary: "List the usage of a space by its users.",
    discussion: """
      A user is charged for the growth that its own changes cause, and credited for the space that \
      they free. The first line is the sum of all users. `ferryd serve --quota-…` sets the limits.
      """,
    flags: [JSONOption.flag], arguments: [nameArgument],
    examples: [ExampleSpec("Find the users that fill a space", "ferryd space usage notes")]
  ) { arguments in
    try await withSpace(arguments) { store, space in
      let rows = withTotals(try await store.usage(in: space.id))
      if arguments.flag("json") {
        let answer = JSONText.object([("usage", .array(rows.map { json($0.principal, $0.usage) }))])
        return try TextOutput.standardOutput.line(answer.text)
      }
      var table = TextTable(["USER", "RECORDS", "BYTES", "DEVICES", "BUFFERED", "WRITTEN TODAY"])
      for (principal, usage) in rows {
        table.append([
          principal.isEmpty ? "(all)" : principal, usage.records.grouped, usage.bytes.grouped,
          usage.devices.grouped, usage.packets.grouped, usage.written.grouped,
        ])
      }
      try TextOutput.standardOutput.lines(table.lines(width: Terminal.current().tableWidth))
    }
    return .done
  }

  /// Adds totals: the store counts only records and bytes of all users together.
  private static func withTotals(
    _ rows: [(principal: String, usage: Usage)]
  ) -> [(principal: String, usage: Usage)] {
    var rows = rows
    guard let all = rows.firstIndex(where: { $0.principal.isEmpty }) else { return rows }
    let today = rows.map(\.usage.day).max() ?? 0
    for (principal, usage) in rows where !principal.isEmpty {
      rows[all].usage.devices += usage.devices
      rows[all].usage.packets += usage.packets
      rows[all].usage.packetBytes += usage.packetBytes
      if usage.day == today { rows[all].usage.written += usage.written }
    }
    rows[all].usage.day = today
    return rows
  }

  private static func json(_ principal: String, _ usage: Usage) -> JSONText {
    .object([
      ("principal", principal.isEmpty ? .null : .string(principal)),
      ("records", .int(usage.records)), ("bytes", .int(usage.bytes)),
      ("devices", .int(usage.devices)), ("bufferedPackets", .int(usage.packets)),
      ("bufferedBytes", .int(usage.packetBytes)), ("day", .int(usage.day)),
      ("written", .int(usage.written)),
    ])
  }
}

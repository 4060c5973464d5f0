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
      let rows = try await store.usage(in: space.id)
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

import FerryCommandLine
import FerryProtocol
import FerrySyncServer

/// `ferryd audit`.
enum AuditCommand {
  static let root = CommandSpec(
    "audit", summary: "Show changes with their principals and times.",
    discussion: """
      The log has an entry for each created space and each change of a retention, schema, mission, \
      key or token, and for each prune by hand. An entry is written together with its change. \
      `ferryd serve --audit-retention` sets how long entries are kept.
      """,
    options: [
      OptionSpec("space", value: "NAME", help: "Only entries about this space."),
      OptionSpec(
        "since", value: "TIME",
        help: "Only entries of the last days, hours or minutes, such as 7d.",
        kind: .duration),
    ],
    flags: [JSONOption.flag],
    examples: [ExampleSpec("The last week of one space", "ferryd audit --space notes --since 7d")]
  ) { arguments in
    let space = try arguments.stringIfPresent("space").map { try SpaceCommands.name($0) }
    let age = try arguments.durationIfPresent("since").flatMap { Retention($0).milliseconds }
    let since = age.map { max(0, ServiceClock.system.wall() - $0) } ?? 0
    try await StoreOptions.withStore(arguments) { store, _ in
      var list = ListOutput(
        "entries", ["TIME", "PRINCIPAL", "ACTION", "SPACE", "DETAIL"],
        isJSON: arguments.flag("json"))
      var query = AuditQuery(space: space, since: since)
      while true {
        let page = try await store.audit(query)
        try list.add(page.map { ($0.cells, $0.json) })
        guard page.count == query.limit, let last = page.last else { break }
        query.after = last.number
      }
      try list.finish()
    }
    return .done
  }
}

extension AuditEntry {
  fileprivate var cells: [String] {
    [RFC3339.text(milliseconds: at), principal, action, space?.value ?? "", detail]
  }

  fileprivate var json: JSONText {
    .object([
      ("number", .int(number)), ("time", .string(RFC3339.text(milliseconds: at))),
      ("principal", .string(principal)), ("action", .string(action)),
      ("space", .string(orNull: space?.value)), ("detail", .string(detail)),
    ])
  }
}

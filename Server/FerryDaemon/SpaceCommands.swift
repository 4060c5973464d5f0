import FerryCommandLine
import FerryProtocol
import FerrySyncServer

/// `ferryd space …`.
enum SpaceCommands {
  static let create = CommandSpec(
    "create", summary: "Create a space; an existing space stays unchanged.",
    flags: [JSONOption.flag],
    arguments: [ArgumentSpec("name", help: "1 to 63 characters of A–Z a–z 0–9 . _ -.")]
  ) { arguments in
    let name = try name(try arguments.string("name"))
    try await StoreOptions.withStore(arguments, createsIfMissing: true) { store, _ in
      let space = try await store.createSpace(name, by: CommandMark.now)
      try TextOutput.standardOutput.line(
        arguments.flag("json") ? space.json.text : "\(space.name) at \(space.head.grouped)")
    }
    return .done
  }

  static let list = CommandSpec(
    "list", summary: "List the spaces.", flags: [JSONOption.flag]
  ) { arguments in
    try await StoreOptions.withStore(arguments) { store, _ in
      let spaces = try await store.spaces()
      if arguments.flag("json") {
        let answer = JSONText.object([("spaces", .array(spaces.map(\.json)))])
        return try TextOutput.standardOutput.line(answer.text)
      }
      var table = TextTable(["SPACE", "HEAD", "HORIZON", "RETENTION", "EPOCH"])
      for space in spaces {
        table.append([
          space.name.value, String(space.head), String(space.retentionHorizon),
          space.retention.text,
          space.epoch.description,
        ])
      }
      try TextOutput.standardOutput.lines(table.lines(width: Terminal.current().tableWidth))
    }
    return .done
  }

  /// Reads a space's name from the command line.
  static func name(_ text: String) throws(UsageError) -> SpaceName {
    guard let name = SpaceName(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' cannot be a space's name",
        why: "a name has 1 to 63 characters of A–Z a–z 0–9 . _ -, the first a letter or digit",
        next: "choose such a name")
    }
    return name
  }
}

extension SpaceSummary {
  var json: JSONText {
    .object([
      ("space", .string(name.value)), ("epoch", .string(epoch.description)),
      ("head", .string(String(head))), ("retentionHorizon", .string(String(retentionHorizon))),
      ("retentionMs", retention.milliseconds.map { .int($0) } ?? .null),
    ])
  }
}

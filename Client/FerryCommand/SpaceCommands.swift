import Ferry
import FerryCommandLine

/// `ferry join`, `leave` and `spaces`.
enum SpaceCommands {
  static let join = CommandSpec(
    "join", summary: "Let this file take part in another space.",
    discussion: """
      Each table of a file belongs to one space: `ferry track TABLE --in SPACE`. Private and shared \
      tables are in one file, one transaction may write to all of them, and `ferry sync` exchanges \
      all spaces. A space that fails does not stop the others.

      The command asks no server; the next sync does. A file has at most 32 spaces. Run it again to \
      change the address or the token.
      """,
    options: [
      OptionSpec(
        "server", short: "s", value: "URL",
        help: "The server's address; without it, that of the file's first space.")
    ]
      + TokenOptions.options(
        "The bearer token; without it, that of the first space, if the server is the same."),
    arguments: [ArgumentSpec("SPACE", help: "The space.")],
    examples: [
      ExampleSpec(
        "A shared list beside private ones",
        "ferry join family && ferry track shopping --in family && ferry sync")
    ]
  ) { arguments in
    let replica = try await firstReplica(arguments)
    let space = try arguments.string("SPACE")
    let joined = try await replica.spaces.join(
      space, server: arguments.stringIfPresent("server"),
      token: TokenOptions.token(arguments).map { .fixed($0) },
      certificateAuthorities: FerryCommand.authorities(arguments))
    try await print(joined, arguments) { "\(replica.path) is device \($0) of \($1)" }
    return .done
  }

  /// Prints the server and the device of a joined space.
  ///
  /// - Parameter text: the text for people, of the device and of the space with the server.
  static func print(
    _ joined: Replica, _ arguments: ParsedArguments, _ text: (DeviceID, String) -> String
  ) async throws {
    let status = try await joined.status()
    try FerryCommand.warn(status.warnings)
    let (space, url) = (status.server?.space.value ?? "", status.server?.url ?? "")
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([
          ("space", .string(space)), ("server", .string(url)),
          ("device", .string("\(status.device)")),
        ]).text
        : text(status.device, "space \(space) on \(url)"))
  }

  static let leave = CommandSpec(
    "leave", summary: "Take this file out of a space that it has joined.",
    discussion: """
      Deletes the rows of the space's tables in this file, its history and its token. The space's \
      other devices keep all rows. If the server lacks changes of this device, the command fails and \
      nothing changes.

      With --member, you are no member of the space any more. Your other devices get and send nothing \
      then.
      """,
    flags: [
      FlagSpec("discard", help: "Lose the changes that the server does not have."),
      FlagSpec("member", help: "End your membership on the server, before."),
    ],
    arguments: [ArgumentSpec("SPACE", help: "The space.", kind: CompletedNames.spaces.kind)]
  ) { arguments in
    let space = try arguments.string("SPACE")
    try await firstReplica(arguments).spaces.leave(
      space, discardingChanges: arguments.flag("discard"),
      endingMembership: arguments.flag("member"))
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("left", .string(space))]).text
        : "this file has left space \(space); its rows are deleted here")
    return .done
  }

  static let spaces = CommandSpec(
    "spaces", summary: "List the spaces of this file.",
    discussion: """
      The first line is the space of `ferry init`; the others are those of `ferry join`. With --mine, it \
      lists the spaces on the server of which you are a member.
      """,
    flags: [FlagSpec("mine", help: "Ask the server for the spaces of which you are a member.")]
  ) { arguments in
    let replica = try await firstReplica(arguments)
    if arguments.flag("mine") { return try await MemberCommands.printMine(replica, arguments) }
    var rows: [[(String, JSONText)]] = []
    for space in try await [replica] + replica.spaces.replicas() {
      let (status, tracked) = (try await space.status(), try await space.trackedLocals())
      let name = status.server?.space.value
      let tables = BoundedList.names(tracked.map(\.text))
      rows.append([
        (name ?? "", .string(orNull: name)),
        (status.server?.url ?? "", .string(orNull: status.server?.url)),
        (status.pending.grouped, .int(status.pending)),
        (tables, .array(tracked.map { .string($0.text) })),
      ])
    }
    try Presentation.print(
      ["space", "server", "pending", "tables"], rows, asJSON: arguments.flag("json"))
    return .done
  }

  /// Opens the replica of the file's first space.
  private static func firstReplica(_ arguments: ParsedArguments) async throws -> Replica {
    guard arguments.stringIfPresent("in") == nil else {
      throw CommandFailure(
        "the command takes no --in", why: "it is about all spaces of the file",
        next: "leave --in out", status: .usage, code: "bad_in")
    }
    return try await FerryCommand.open(arguments)
  }
}

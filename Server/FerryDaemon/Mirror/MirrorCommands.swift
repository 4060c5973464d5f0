import FerryCommandLine
import FerryHTTPServer
import FerryMirror
import FerryPlatform
import FerryPostgres
import FerryProtocol
import FerrySyncClient
import FerrySyncServer
import Foundation

/// `ferryd mirror …`.
enum MirrorCommands {
  static let root = CommandSpec(
    "mirror", summary: "Keep tables of a PostgreSQL database in sync with a space, both ways.",
    discussion: """
      A mirror is a device of a space whose rows are in ordinary tables of PostgreSQL. Programs read \
      and write these tables with plain SQL. Their writes reach the space as those of any device \
      do, and the space's rules decide conflicts. One process runs a mirror: `ferryd mirror run`, or \
      a server that has --mirror.
      """,
    options: [mirrorsOption],
    subcommands: [
      PlanCommand.root, AddCommand.root, AdoptCommand.root, list, run, status, verify, remove,
    ],
    examples: [
      ExampleSpec(
        "Mirror a space into schema app",
        "ferryd mirror add crm --server http://127.0.0.1:8080 --space crm "
          + "--database postgres://app@db/company --schema app"),
      ExampleSpec(
        "Make a company's table tasks, with its rows, a table of a space",
        "ferryd mirror adopt crm --server http://127.0.0.1:8080 --space crm "
          + "--database postgres://app@db/company --table tasks"),
      ExampleSpec("Keep it in sync until SIGTERM", "ferryd mirror run crm"),
    ])

  static let mirrorsOption = OptionSpec(
    "mirrors", value: "DIR",
    help: """
      The folder of all mirrors; by default $XDG_STATE_HOME/ferryd/mirrors, or \
      ~/.local/state/ferryd/mirrors.
      """,
    kind: .directory, environment: "FERRY_MIRRORS")

  static let serverOption = OptionSpec(
    "server", value: "URL", help: "The server of the space.", default: "http://127.0.0.1:8080")
  static let spaceOption = OptionSpec("space", value: "NAME", help: "The space.", required: true)

  static let nameArgument = ArgumentSpec(
    "name",
    help: "The name of the mirror (1 to 63 characters of a–z 0–9 _ -) or of the group (1 to 30).")

  /// Prints a warning if a mirror's role has rights beyond the database.
  static func warnOfRole(_ name: String, _ database: String) async throws {
    let role = try await explained(name) { try await PostgresRole.connecting(to: database) }
    guard let warning = role.warning else { return }
    try TextOutput.standardError.line(
      "warning: \(warning); connect with a role of its own, see Documentation/mirrors.md#the-role")
  }

  static func configuration(
    _ name: String, space: String, _ arguments: ParsedArguments
  ) throws -> MirrorConfiguration {
    guard let database = arguments.stringIfPresent("database") else {
      throw UsageError(
        .missingOption, "--database is missing", why: "a mirror's tables are in a database",
        next: "add --database postgres://user:password@host/name")
    }
    var configuration = MirrorConfiguration(
      name: name, server: try arguments.string("server"), space: space, database: database,
      schema: try arguments.string("schema"))
    configuration.tables = arguments.strings("table")
    configuration.capture =
      arguments.stringIfPresent("capture").flatMap(MirrorCapture.init) ?? configuration.capture
    return configuration
  }

  private static let list = CommandSpec(
    "list", summary: "List the mirrors of this machine.", flags: [JSONOption.flag]
  ) { arguments in
    let root = try root(arguments)
    let names = ((try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []).sorted()
    let folders = names.filter(MirrorConfiguration.isName).map { MirrorFolder($0, in: root) }
    let found = folders.compactMap { try? $0.configuration() }
    let groups = folders.compactMap { try? $0.group() }
    if arguments.flag("json") {
      let answer = found.map { mirror in
        JSONText.object([
          ("mirror", .string(mirror.name)), ("server", .string(mirror.server)),
          ("space", .string(mirror.space)), ("schema", .string(mirror.schema)),
          ("group", .string(orNull: mirror.group)),
        ])
      }
      let shown = groups.map { group in
        JSONText.object([
          ("group", .string(group.name)), ("server", .string(group.server)),
          ("spaces", .string(group.pattern)), ("schema", .string(group.schema)),
        ])
      }
      try TextOutput.standardOutput.line(
        JSONText.object([("mirrors", .array(answer)), ("groups", .array(shown))]).text)
      return .done
    }
    guard !found.isEmpty || !groups.isEmpty else {
      try TextOutput.standardOutput.line("there is no mirror in \(root): see `ferryd mirror add`")
      return .done
    }
    var table = TextTable(["MIRROR", "SPACE", "SCHEMA", "SERVER"])
    for group in groups { table.append([group.name, group.pattern, group.schema, group.server]) }
    for mirror in found { table.append([mirror.name, mirror.space, mirror.schema, mirror.server]) }
    try TextOutput.standardOutput.lines(table.lines(width: Terminal.current().tableWidth))
    return .done
  }

  private static let run = CommandSpec(
    "run", summary: "Keep a mirror, or a group of mirrors, in sync until SIGTERM or SIGINT.",
    discussion: """
      If the server or the database cannot be reached, the mirror waits and goes on later. It can be \
      killed at any moment. Only one process may run a mirror. A group also makes the mirrors of new \
      values of its column. Exit code 4: the mirror has stopped itself, because a table was changed.
      """,
    arguments: [nameArgument]
  ) { arguments in
    let (name, folder) = try folder(arguments)
    // Each mirror of a group has some files open.
    FileDescriptorLimit.raise()
    // The settings are wrong or not: this does not change while it runs.
    try await explained(name) {
      if folder.isGroup { _ = try folder.group() } else { _ = try folder.configuration() }
    }
    try await explained(name) { try await runner(name, arguments).runUntilStopped() }
    return .done
  }

  private static let verify = CommandSpec(
    "verify", summary: "Compare all rows of a mirror's tables with the space.",
    discussion: """
      Rows differ if a program wrote them without triggers (session_replication_role = replica). \
      With --repair tables, such a row becomes as it is in the space. With --repair space, the \
      space gets the row as a write of now. Rows that name a space without a mirror are listed. Stop `ferryd mirror run` first. \
      A repair also starts a mirror again that has stopped itself. Exit code 1: rows differ. Exit code \
      4: the tables have rows that the space refuses.
      """,
    options: [
      OptionSpec(
        "repair", value: "SIDE", help: "The side that changes: tables or space.",
        kind: .choice(Mirror.Side.allCases.map(\.rawValue)))
    ], flags: [JSONOption.flag], arguments: [nameArgument]
  ) { arguments in
    if let group = try await MirrorGroupCommands.group(arguments) {
      return try await MirrorGroupCommands.verify(group, arguments)
    }
    let (name, folder) = try folder(arguments)
    let side = arguments.stringIfPresent("repair").flatMap(Mirror.Side.init(rawValue:))
    let (found, unclaimed, status) = try await opened(name, folder) {
      (
        try await $0.verify(repairing: side), try await $0.unclaimedRows(), try await $0.status()
      )
    }
    if arguments.flag("json") {
      try TextOutput.standardOutput.line(
        JSONText.object([
          ("differences", .array(found.map(\.json))), ("repaired", .bool(side != nil)),
          ("unclaimed", .array(unclaimed.map(\.json))),
          ("unsentCount", .string(String(status.unsentCount))),
        ]).text)
    } else {
      for rows in unclaimed { try TextOutput.standardOutput.line(rows.text) }
      for row in found { try TextOutput.standardOutput.line(row.text) }
      if let text = status.leftText { try TextOutput.standardOutput.line(text) }
      try TextOutput.standardOutput.line(
        MirrorGroupCommands.verdict(found.count, isRepaired: side != nil))
    }
    return found.isEmpty || side != nil ? status.exit : .failed
  }

  private static let remove = CommandSpec(
    "remove", summary: "Remove a mirror or a group of mirrors; the tables stay as they are.",
    discussion: """
      For adopted tables, the folder keeps the last rows of the mirror's file, without token and \
      settings. If you adopt the same tables into the same space again, the mirror compares with \
      them: rows deleted by the company meanwhile are deleted in the space, and devices' changes made \
      meanwhile are kept. If the folder of the mirror or the group is lost, --database names the \
      database with its triggers or its slot.
      """,
    flags: [
      FlagSpec("forget", help: "Remove the last rows of adopted tables as well.")
    ], arguments: [nameArgument]
  ) { arguments in
    let (name, folder) = try folder(arguments)
    let group = try await MirrorGroupCommands.group(arguments)
    let forgets = arguments.flag("forget")
    try await explained(name) {
      var changed: [String] = []
      if let group {
        changed = try await group.remove(forgets: forgets)
      } else if !folder.exists, let database = arguments.stringIfPresent("database") {
        changed = try await Mirror.remove(name, from: database)
      } else {
        changed = try await Mirror.remove(folder, forgets: forgets)
      }
      for part in changed { try TextOutput.standardError.line("changed: \(part)") }
    }
    try TextOutput.standardOutput.line("removed mirror \(name); its tables stay")
    return .done
  }

  // MARK: Parts

  static func runner(
    _ name: String, _ arguments: ParsedArguments, _ gauges: MirrorGauges = MirrorGauges()
  ) throws -> MirrorRunner {
    // The name is checked.
    _ = try folder(name, arguments)
    return MirrorRunner(
      name: name, root: try root(arguments), log: try LogOptions.log(arguments), gauges: gauges)
  }

  static func root(_ arguments: ParsedArguments) throws -> String {
    if let path = arguments.stringIfPresent("mirrors") { return path }
    let environment = ProcessInfo.processInfo.environment
    if let state = environment["XDG_STATE_HOME"], state.begins(with: "/") {
      return state + "/ferryd/mirrors"
    }
    guard let home = environment["HOME"], home.begins(with: "/") else {
      throw FerryServerError.noHome
    }
    return home + "/.local/state/ferryd/mirrors"
  }

  static func folder(
    _ name: String, _ arguments: ParsedArguments
  ) throws -> MirrorFolder {
    guard MirrorConfiguration.isName(name) else {
      throw UsageError(
        .invalidValue, "'\(name)' cannot be a mirror's name",
        why: "a name has 1 to 63 characters of a–z 0–9 _ -, the first a letter or digit",
        next: "choose such a name; `ferryd mirror list` lists the mirrors")
    }
    return MirrorFolder(name, in: try root(arguments))
  }

  static func folder(
    _ arguments: ParsedArguments
  ) throws -> (name: String, folder: MirrorFolder) {
    let name = try arguments.string("name")
    return (name, try folder(name, arguments))
  }

  static func opened<T: Sendable>(
    _ name: String, _ folder: MirrorFolder, sharing database: MirrorDatabase? = nil,
    _ body: (Mirror) async throws -> T
  ) async throws -> T {
    try await explained(name) {
      let mirror = try await Mirror.open(folder, sharing: database)
      do {
        let result = try await body(mirror)
        await mirror.close()
        return result
      } catch {
        await mirror.close()
        throw error
      }
    }
  }

  /// Runs `body` with errors for users.
  static func explained<T>(
    _ name: String, _ body: () async throws -> T
  ) async throws -> T {
    do {
      return try await body()
    } catch let error as MirrorStopped {
      throw CommandFailure(
        "mirror \(name) has stopped itself", why: error.description, next: error.wayOut,
        status: .needsUser, code: "mirror_stopped")
    } catch let error as MirrorFault {
      throw CommandFailure(
        "mirror \(name) cannot be used", why: error.description,
        next: "see `ferryd mirror --help`", code: "mirror")
    } catch let error as PostgresError {
      throw CommandFailure(
        "the database of mirror \(name) cannot be used", why: error.message,
        next: "check --database, and the rights of its user", code: "mirror_database")
    } catch let error as ReplicaError {
      throw failure(error, of: name)
    } catch let error as CocoaError where error.isFileError {
      throw CommandFailure(
        "there is no mirror \(name)", why: "its folder has no mirror.json",
        next: "`ferryd mirror list` lists the mirrors; --mirrors names their folder",
        code: "unknown_mirror")
    }
  }

  /// Names the failed part of a mirror: the file, the server for now, or the settings of the space.
  private static func failure(_ error: ReplicaError, of name: String) -> CommandFailure {
    let row = error.explanation
    switch error {
    case .busy:
      return CommandFailure(
        "the file of mirror \(name) is busy", why: row.reason, next: row.next,
        status: .unreachable, code: row.code)
    case .database:
      return CommandFailure(
        "the file of mirror \(name) cannot be used", why: row.reason, next: row.next,
        code: row.code)
    case _ where error.isTransient:
      return CommandFailure(
        "the space of mirror \(name) cannot be reached", why: row.description,
        next: "try again later, or check --server; no write is lost", status: .unreachable,
        code: row.code)
    default:
      return CommandFailure(
        "the space of mirror \(name) cannot be used", why: row.description,
        next: "check --server, --space and --token", code: "mirror_space")
    }
  }
}

extension Mirror.Difference {
  var text: String {
    let place = isInTable ? (isInSpace ? "differs" : "only in the table") : "only in the space"
    return "\(table) \(key.joined(separator: ", ")): \(place)"
  }

  var json: JSONText {
    .object([
      ("table", .string(table.text)), ("key", .array(key.map { .string($0) })),
      ("inTable", .bool(isInTable)), ("inSpace", .bool(isInSpace)),
    ])
  }
}

extension UnclaimedRows {
  var text: String {
    "\(table): \(count.counted("row")) \(count == 1 ? "does" : "do") not travel: "
      + "no mirror has \(column) \(value ?? "NULL")"
  }

  var json: JSONText {
    .object([
      ("table", .string(table.text)), ("column", .string(column)),
      ("value", value.map { .string($0) } ?? .null), ("rows", .string(String(count))),
    ])
  }
}

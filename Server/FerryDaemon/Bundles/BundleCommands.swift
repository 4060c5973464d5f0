import FerryCommandLine
import FerryMissionServer
import FerryProtocol
import FerrySyncServer

/// `ferryd bundle …`.
enum BundleCommands {
  static let root = CommandSpec(
    "bundle", summary: "Publish web apps that the shells of devices show, and roll them out.",
    discussion: """
      A bundle is a folder of HTML, CSS and JavaScript with a file ferry-bundle.json. Each version \
      is a signed mission, which devices download, check and activate as a whole. The commands work \
      on the store, even while a server runs. With --server they ask a server instead, with a token \
      of the role admin.
      """,
    options: ContentOptions.options + MissionCommands.targetOptions,
    subcommands: [publish, list, show, promote, withdraw],
    examples: [
      ExampleSpec(
        "Offer a version to a tenth of the devices",
        "ferryd bundle publish board/ --space tasks --percent 10"),
      ExampleSpec(
        "See how it does, and offer it to all",
        "ferryd bundle show board --space tasks && ferryd bundle promote board --space tasks"),
    ])

  static let list = CommandSpec(
    "list", summary: "List the published versions of all bundles.",
    options: [MissionCommands.spaceOption], flags: [JSONOption.flag]
  ) { arguments in
    try await MissionTargets.with(arguments) { target in
      var list = ListOutput(
        "bundles", BundleReportTable.titles, isJSON: arguments.flag("json"),
        none: "no bundle is published in space \(target.name): `ferryd bundle publish DIR --space "
          + "\(target.name)` publishes a folder")
      try await target.forEachBundlePage { entries in
        try list.add(entries.map { ($0.cells, $0.json) })
      }
      try list.finish()
    }
    return .done
  }

  static let show = CommandSpec(
    "show", summary: "Show a bundle's versions, and how devices report about them.",
    discussion: """
      Successes and failures count devices, by the last report of each about a version. The latest \
      failures are listed with their reasons.
      """,
    options: [MissionCommands.spaceOption], flags: [JSONOption.flag], arguments: [nameArgument]
  ) { arguments in
    let name = try name(try arguments.string("name"))
    try await MissionTargets.with(arguments) { target in
      let overview = try await target.bundle(name)
      if arguments.flag("json") {
        return try TextOutput.standardOutput.line(overview.json.text)
      }
      try BundleReportTable.print(overview)
    }
    return .done
  }

  static let promote = CommandSpec(
    "promote", summary: "Offer a version to more devices, by default to all of them.",
    discussion: """
      Devices that take the version at 10% also take it at 50%. A smaller share stops the rollout \
      to further devices; those that have activated the version keep it.
      """,
    options: [MissionCommands.spaceOption, percentOption],
    flags: [JSONOption.flag], arguments: [nameArgument, versionArgument]
  ) { arguments in
    let share = try share(arguments)
    return try await change(arguments, .share(share), "promoted") { entry in
      "\(entry.id) is offered to \(entry.listing.share) of the devices"
    }
  }

  static let withdraw = CommandSpec(
    "withdraw", summary: "Withdraw a version: devices that use it fall back at their next sync.",
    discussion: """
      A withdrawn version cannot be published or promoted again; publish another version instead. \
      By default the latest version is withdrawn that is not withdrawn yet.
      """,
    options: [MissionCommands.spaceOption], flags: [JSONOption.flag],
    arguments: [nameArgument, versionArgument]
  ) { arguments in
    try await change(arguments, .withdrawal, "withdrawn") { "\($0.id) is withdrawn" }
  }

  // MARK: Parts

  static let nameArgument = ArgumentSpec("name", help: "The bundle's name.")

  static let versionArgument = ArgumentSpec(
    "version", help: "The version; by default the latest one that is not withdrawn.",
    arity: .optional)

  static let percentOption = OptionSpec(
    "percent", value: "N",
    help: "The share of devices that take the version: 0 to 100, with up to two decimals.",
    default: "100")

  /// Reads a bundle's name from the command line.
  static func name(_ text: String) throws(UsageError) -> BundleName {
    guard let name = BundleName(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' cannot be a bundle's name",
        why: "a name has 1 to 64 characters of a–z 0–9 _ -, the first a letter or digit",
        next: "choose such a name; `ferryd bundle list` lists the published bundles")
    }
    return name
  }

  static func share(_ arguments: ParsedArguments) throws -> BundleShare {
    let text = try arguments.string("percent")
    guard let share = BundleShare(percent: text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not a percentage",
        why: "--percent is a number from 0 to 100 with at most two decimals",
        next: "write --percent 10")
    }
    return share
  }

  static func unknown(_ name: BundleName, in space: SpaceName) -> CommandFailure {
    CommandFailure(
      "there is no bundle \(name)", why: "space \(space) has no published version of it",
      next: "see `ferryd bundle list --space \(space)`", code: "unknown_bundle")
  }

  /// Returns the failure of a command about a bundle, without the words *mission* and *address*.
  static func failure(
    _ problem: Problem, _ name: BundleName, in space: SpaceName
  ) -> CommandFailure {
    let (what, next): (String, String)
    switch problem.code {
    case .missionConflict:
      what = "the version cannot be published or offered"
      next =
        "write another version into ferry-bundle.json, and publish it; if the key is another one, "
        + "`--new-key` confirms it"
    case .notFound:
      what = "bundle \(name) has no such version"
      next = "see `ferryd bundle show \(name) --space \(space)`"
    default: return problem.commandFailure
    }
    return CommandFailure(what, why: problem.detail, next: next, code: problem.code.rawValue)
  }

  /// Changes the named version, or the latest one in use.
  private static func change(
    _ arguments: ParsedArguments, _ change: BundleChange, _ event: String,
    _ text: @Sendable (BundleEntry) -> String
  ) async throws -> ExitStatus {
    let name = try name(try arguments.string("name"))
    let named = try version(arguments)
    try await MissionTargets.with(arguments) { target in
      let version: BundleVersion
      if let named {
        version = named
      } else {
        let entries = try await target.bundles().filter { $0.id.name == name }
        guard !entries.isEmpty else { throw unknown(name, in: target.name) }
        guard let last = entries.last(where: { !$0.listing.isWithdrawn }) else {
          throw CommandFailure(
            "all versions of bundle \(name) are withdrawn", why: "none of them is in use",
            next: "publish another version", code: "bundle_withdrawn")
        }
        version = last.id.version
      }
      let entry: BundleEntry
      do {
        entry = try await target.change(BundleID(name, version), change)
      } catch let problem as Problem {
        throw failure(problem, name, in: target.name)
      }
      try TextOutput.standardOutput.line(
        arguments.flag("json")
          ? JSONText.object([("event", .string(event))] + entry.fields).text
          : text(entry).escapedForTerminal)
    }
    return .done
  }

  private static func version(_ arguments: ParsedArguments) throws(UsageError) -> BundleVersion? {
    guard let text = arguments.stringIfPresent("version") else { return nil }
    guard let version = BundleVersion(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not a bundle's version",
        why: "a version has 1 to 4 numbers with dots", next: "write 1.2")
    }
    return version
  }
}

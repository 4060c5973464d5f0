import Ferry
import FerryCommandLine

/// `ferry bundle`: lists, fetches and activates versions of an app.
enum BundleCommands {
  static let bundle = CommandSpec(
    "bundle", summary: "Fetch, activate and leave versions of web apps that the space publishes.",
    discussion: """
      A bundle is a web app that a shell shows. `ferry pull` fetches the catalogue, and `ferry \
      bundle fetch` the files of the latest version that is offered to this device. `ferry bundle \
      activate` puts it in use, on trial, until its page or `ferry bundle confirm` confirms it. \
      `ferry bundle fallback` returns to the last good version. The next sync reports outcomes to \
      the server, and leaves versions that were withdrawn.
      """,
    options: [
      MissionCommands.missionKeyFile,
      OptionSpec(
        "shell", value: "VERSION",
        help: "The version of the shell that shows the bundles; 1 by default.",
        environment: "FERRY_SHELL_VERSION"),
    ], flags: [MissionCommands.allowPrivateAddresses],
    subcommands: [
      bundleList, bundleShow, bundleFetch, bundleActivate, bundleConfirm, bundleFallback,
    ],
    examples: [
      ExampleSpec("Fetch the latest version and use it", "ferry bundle fetch board --activate"),
      ExampleSpec(
        "Return to the version before", "ferry bundle fallback board --reason \"blank page\""),
    ])

  private static let bundleArgument = ArgumentSpec("NAME", help: "The bundle's name.")

  private static let bundleList = CommandSpec(
    "list", summary: "List the versions of all bundles, offered or stored on this device.",
    discussion: """
      State: active (in use), trial (in use, but not confirmed), previous (the version to fall back \
      to), here (downloaded), failed, withdrawn, or offered; empty if the version is not offered \
      to this device.
      """
  ) { arguments in
    let bundles = try await bundles(arguments)
    let none =
      "there is no bundle: `ferry pull` fetches the catalogue, and `ferryd bundle publish` "
      + "publishes a bundle"
    try BundlePresentation.print(
      try await bundles.list(), none: none, asJSON: arguments.flag("json"))
    return .done
  }

  private static let bundleShow = CommandSpec(
    "show", summary: "Show a bundle: the version in use, its services, and all versions.",
    arguments: [bundleArgument]
  ) { arguments in
    let bundles = try await bundles(arguments)
    let name = try bundleName(arguments)
    let versions = try await bundles.versions(of: name)
    guard !versions.isEmpty else {
      throw BundleError(.notFound, "there is no bundle \(name) in the catalogue")
    }
    try BundlePresentation.print(
      name, try await bundles.active(name), versions, asJSON: arguments.flag("json"))
    return .done
  }

  private static let bundleFetch = CommandSpec(
    "fetch", summary: "Fetch the latest version that is offered, or a named one.",
    discussion: """
      Pulls the catalogue first, if the server can be reached. Continues an earlier download at its \
      place, and fetches only the content that this device lacks. The version is not used before \
      `ferry bundle activate`, or with --activate at once. With --json, each event is a line.
      """,
    options: [MissionDownload.patience, MissionDownload.timeout, MissionDownload.limitRate],
    flags: [
      MissionDownload.watchFlag,
      FlagSpec("activate", help: "Put the version in use when it is complete."),
    ],
    arguments: [bundleArgument, versionArgument]
  ) { arguments in
    let (name, version) = (try bundleName(arguments), try bundleVersion(arguments))
    let silence = try MissionDownload.silence(arguments)
    let replica = try await MissionDownload.openPulled(arguments, silence: silence)
    let manager = try await MissionCommands.missions(
      of: replica, arguments, silence: silence,
      rate: try arguments.byteSizeIfPresent("limit-rate"))
    let bundles = try await bundles(of: replica, manager, arguments)
    let id = try await bundles.offer(of: name, version: version).id
    let found = try await MissionDownload.watch([id.mission], with: manager, arguments) {
      try await manager.download([id.mission])
    }
    if let unfinished = found.first(where: { $0.state != .done && !$0.isDownloaded }) {
      return try MissionEndings([unfinished]).report(asJSON: arguments.flag("json"))
    }
    guard arguments.flag("activate") else {
      try report(id.name, id.version, "fetched", "is here", arguments)
      return .done
    }
    let active = try await bundles.activate(name, version: version)
    try report(active.name, active.version, "activated", "is in use, on trial", arguments)
    return .done
  }

  private static let bundleActivate = CommandSpec(
    "activate", summary: "Put a downloaded version in use.",
    discussion: """
      Shells show it from their next page load on. It is on trial until it is confirmed. Without \
      VERSION, the latest offered version that did not fail here is used. A version that failed \
      gets another chance if it is named.
      """,
    arguments: [bundleArgument, versionArgument]
  ) { arguments in
    let bundles = try await bundles(arguments)
    let active = try await bundles.activate(
      try bundleName(arguments), version: try bundleVersion(arguments))
    let isKept = active.isConfirmed
    try report(
      active.name, active.version, isKept ? "kept" : "activated",
      isKept ? "stays in use" : "is in use, on trial", arguments)
    return .done
  }

  private static let bundleConfirm = CommandSpec(
    "confirm", summary: "Confirm that the version in use works.",
    discussion: "The next sync reports the success. Versions that are not needed are removed.",
    arguments: [bundleArgument]
  ) { arguments in
    let bundles = try await bundles(arguments)
    let name = try bundleName(arguments)
    guard let active = try await bundles.active(name) else {
      throw BundleError(.notFound, "no version of bundle \(name) is in use")
    }
    try await bundles.confirm(active)
    try report(name, active.version, "confirmed", "is confirmed", arguments)
    return .done
  }

  private static let bundleFallback = CommandSpec(
    "fallback", summary: "Return to the last good version, and report why.",
    discussion: """
      The version in use is not activated automatically again. The next sync reports the failure.
      """,
    options: [
      OptionSpec(
        "reason", value: "TEXT", help: "The reason for the server, 1,000 characters at most.",
        default: "the user left this version")
    ],
    arguments: [bundleArgument]
  ) { arguments in
    let bundles = try await bundles(arguments)
    let name = try bundleName(arguments)
    let active = try await bundles.fallBack(name, reason: try arguments.string("reason"))
    if let active {
      try report(name, active.version, "fell_back", "is in use again", arguments)
    } else {
      try TextOutput.standardOutput.line(
        arguments.flag("json")
          ? JSONText.object([
            ("event", .string("fell_back")), ("bundle", .string(name.value)), ("version", .null),
          ]).text : "no version of bundle \(name) is in use any more: there was no good one before")
    }
    return .done
  }

  // MARK: Parts

  private static let versionArgument = ArgumentSpec(
    "VERSION", help: "A version, instead of the latest one that is offered.", arity: .optional)

  private static func bundles(_ arguments: ParsedArguments) async throws -> Bundles {
    let replica = try await FerryCommand.open(arguments)
    return try await bundles(
      of: replica, try await MissionCommands.missions(of: replica, arguments), arguments)
  }

  private static func bundles(
    of replica: Replica, _ manager: MissionManager, _ arguments: ParsedArguments
  ) async throws -> Bundles {
    var options = BundleOptions()
    if let text = arguments.stringIfPresent("shell") {
      guard let shell = BundleVersion(text) else { throw notAVersion(text, "--shell") }
      options.shell = shell
    }
    return try await replica.bundles(options: options, missions: manager)
  }

  /// Returns the bundles in use of a replica and its joined spaces, so a sync reports about them.
  /// Encrypted ones need the key; without it, their reports wait.
  static func bundlesInUse(
    of replica: Replica, _ arguments: ParsedArguments
  ) async throws -> [Bundles] {
    let key = try MissionKeyFile.key(arguments)
    var found: [Bundles] = []
    var replicas = [replica]
    for name in (try? await replica.spaces.joined()) ?? [] {
      if let joined = try? await replica.spaces.replica(of: name), joined.place != replica.place {
        replicas.append(joined)
      }
    }
    for replica in replicas where FileAccess.exists(replica.place + ".missions/content.db") {
      do {
        let manager = try await replica.missionManager(key: key, restores: false)
        found.append(try await replica.bundles(missions: manager))
      } catch {
        // Records are exchanged all the same.
        guard key != nil else { continue }
        try FerryCommand.warn(["the outcomes of bundles are not reported: \(error)"])
      }
    }
    return found
  }

  private static func bundleName(_ arguments: ParsedArguments) throws -> BundleName {
    let text = try arguments.string("NAME")
    guard let name = BundleName(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not a bundle's name",
        why: "it has 1 to 64 characters of a–z 0–9 _ -, the first a letter or digit",
        next: "`ferry bundle list` lists the names")
    }
    return name
  }

  private static func bundleVersion(_ arguments: ParsedArguments) throws -> BundleVersion? {
    guard let text = arguments.stringIfPresent("VERSION") else { return nil }
    guard let version = BundleVersion(text) else { throw notAVersion(text, "VERSION") }
    return version
  }

  private static func notAVersion(_ text: String, _ option: String) -> UsageError {
    UsageError(
      .invalidValue, "'\(text)' is not a version", why: "a version has 1 to 4 numbers with dots",
      next: "write 1.2 for \(option)")
  }

  private static func report(
    _ name: BundleName, _ version: BundleVersion, _ event: String, _ text: String,
    _ arguments: ParsedArguments
  ) throws {
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([
          ("event", .string(event)), ("bundle", .string(name.value)),
          ("version", .string(version.description)),
        ]).text : "bundle \(name) \(version) \(text)")
  }
}

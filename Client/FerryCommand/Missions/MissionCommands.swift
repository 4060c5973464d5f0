import Ferry
import FerryCommandLine
import Foundation

/// `ferry mission`: missions on the device.
enum MissionCommands {
  static let mission = CommandSpec(
    "mission", summary: "Download missions, and keep them for offline use.",
    discussion: """
      A mission is a folder of files that a space publishes. `ferry pull` fetches the \
      catalogue, and `ferry mission download` fetches the files. Each file is verified by its \
      checksum. A mission is stored whole, in the folder that `ferry mission path` prints, or not \
      at all. An interrupted download continues at its place with the next one. Files that two \
      missions share, and unchanged parts of a new version, are fetched once.

      With a key file the content is encrypted at rest (AES-256-GCM). Programs then read it \
      through the library, and all commands about these missions need the key.
      """,
    options: [missionKeyFile], flags: [allowPrivateAddresses],
    subcommands: [
      missionList, missionShow, MissionDownload.missionDownload, missionPause,
      MissionDownload.missionResume, missionCancel,
      missionRemove, missionVerify, missionPath, missionTrust,
    ],
    examples: [
      ExampleSpec("What there is", "ferry pull && ferry mission list"),
      ExampleSpec(
        "Fetch two, and look",
        "ferry mission download intro lesson-1 && ls \"$(ferry mission path intro)\""),
    ])

  static let missionKeyFile = OptionSpec(
    "key-file", value: "FILE", help: "A file with the key: 32 bytes, or 64 hexadecimal digits.",
    kind: .file, environment: "FERRY_MISSION_KEY_FILE")

  static let allowPrivateAddresses = FlagSpec(
    "allow-private-addresses",
    help: """
      Also fetch content from private, loopback and link-local addresses that a mission names. \
      Without it only the server's own host may have such an address.
      """)

  static let missionArgument = ArgumentSpec(
    "ID", help: "The mission's identifier.", kind: CompletedNames.missions.kind)

  private static let missionList = CommandSpec(
    "list", summary: "List the missions that are published or stored on this device.",
    discussion: """
      State: ready (waits for its turn), downloading, interrupted (no process fetches it any \
      more), paused, done, failed or cancelled (none of it is stored here); empty if it was not \
      requested.
      """,
    flags: [
      FlagSpec("downloaded", help: "Only complete missions."),
      FlagSpec("downloading", help: "Only missions that are running or paused."),
      FlagSpec(
        "watch", short: "w", help: "Show progress until no mission is running any more."),
    ]
  ) { arguments in
    let manager = try await missions(arguments)
    func found() async throws -> [MissionStatus] {
      try await manager.list().filter { status in
        if arguments.flag("downloaded") && !status.isDownloaded { return false }
        return !arguments.flag("downloading") || status.isUnderWay
      }
    }
    if arguments.flag("watch") {
      try await MissionWatch(asJSON: arguments.flag("json")).watch(found)
    }
    let none =
      arguments.flag("downloaded")
      ? "no mission is complete: `ferry mission list` lists the published missions"
      : arguments.flag("downloading")
        ? "no mission is running or paused: `ferry mission download ID` fetches one"
        : "there is no mission: `ferry pull` fetches the catalogue, and `ferryd mission "
          + "publish` publishes a mission"
    try MissionPresentation.print(
      try await found(), none: none, asJSON: arguments.flag("json"))
    return .done
  }

  private static let missionShow = CommandSpec(
    "show", summary: "Show a mission with its items.",
    flags: [
      FlagSpec(
        "watch", short: "w", help: "Show progress until the mission is not running any more.")
    ],
    arguments: [missionArgument]
  ) { arguments in
    let manager = try await missions(arguments)
    let id = try missionID(arguments)
    let asJSON = arguments.flag("json")
    if arguments.flag("watch") {
      try await MissionWatch(asJSON: asJSON).watch { [try await manager.mission(id)] }
    }
    let status = try await manager.mission(id)
    let items = status.isDownloaded ? try await manager.items(id) : []
    try MissionPresentation.print(status, items, asJSON: asJSON)
    return .done
  }

  private static let missionPause = CommandSpec(
    "pause", summary: "Pause a mission, and keep its fetched content.",
    discussion: "This also pauses a download by another process.", arguments: [missionArgument]
  ) { arguments in
    try await change(arguments, "is paused; `ferry mission resume` continues") { manager, id in
      do {
        try await manager.pause(id)
      } catch {
        throw complete(id, try? await manager.mission(id), "paused") ?? error
      }
    }
  }

  private static let missionCancel = CommandSpec(
    "cancel", summary: "Cancel a mission, and remove its fetched content.",
    discussion: "A complete version stays.", arguments: [missionArgument]
  ) { arguments in
    try await change(arguments, "is cancelled") { manager, id in
      do {
        try await manager.cancel(id)
      } catch {
        throw complete(id, try? await manager.mission(id), "cancelled") ?? error
      }
    }
  }

  /// Returns the failure to change an ended download; `nil` if the mission is not complete.
  private static func complete(
    _ id: MissionID, _ status: MissionStatus?, _ change: String
  ) -> CommandFailure? {
    guard let status, status.isDownloaded, !status.isUnderWay else { return nil }
    return CommandFailure(
      "mission \(id) is not \(change)",
      why: "all of it is on this device, and nothing of it is being fetched",
      next: "`ferry mission remove \(id)` removes its files", code: "mission_complete")
  }

  private static let missionRemove = CommandSpec(
    "remove", summary: "Remove a mission's files, except files that other missions share.",
    arguments: [missionArgument]
  ) { arguments in
    try await change(arguments, "is removed from this device") { try await $0.remove($1) }
  }

  private static let missionVerify = CommandSpec(
    "verify", summary: "Read a mission's files again and compare their checksums.",
    discussion: "Ends with status 4 if a file is damaged and was not repaired.",
    flags: [FlagSpec("repair", help: "Fetch damaged content again.")],
    arguments: [missionArgument]
  ) { arguments in
    let id = try missionID(arguments)
    let manager = try await missions(arguments)
    let check = MissionCheck(
      id: id, isRepaired: arguments.flag("repair"), asJSON: arguments.flag("json"))
    let report = try await check.run(with: manager)
    try check.printFindings(report)
    guard !report.isIntact && !report.isRepaired else { return .done }
    throw CommandFailure(
      "mission \(id) is damaged", why: "files are missing, or differ from the downloaded ones",
      next: "`ferry mission verify \(id) --repair` fetches them again", status: .needsUser,
      code: "mission_damaged")
  }

  private static let missionPath = CommandSpec(
    "path", summary: "Print the folder of a mission's files, or one file's path.",
    discussion: """
      The folder contains one whole version, and stays unchanged until the version after the next \
      one is complete.
      """,
    arguments: [
      missionArgument, ArgumentSpec("ITEM", help: "One of the mission's files.", arity: .optional),
    ]
  ) { arguments in
    let id = try missionID(arguments)
    let manager = try await missions(arguments)
    guard !manager.files.isSealed else {
      throw CommandFailure(
        "mission \(id) has no folder", why: "its content is encrypted at rest",
        next: "read it from a program, with `content(of:in:)` of the library's mission manager",
        code: "mission_sealed")
    }
    var path = URL(filePath: try await manager.path(id)).path
    if let item = arguments.stringIfPresent("ITEM") {
      guard try await manager.items(id).contains(where: { $0.path == item }) else {
        throw MissionError(.notFound, item: item, "mission \(id) has no such item")
      }
      path += "/\(item)"
    }
    guard FileManager.default.fileExists(atPath: path) else {
      throw MissionError(.damaged, "\(path) is missing").failure(of: id)
    }
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([("mission", .string(id.value)), ("path", .string(path))]).text : path)
    return .done
  }

  private static let missionTrust = CommandSpec(
    "trust", summary: "Set the key that missions must be signed with from now on.",
    discussion: """
      The first mission's key is trusted automatically; a mission signed with another key is \
      refused. `ferryd mission key` prints the server's key. Without KEY, prints the trusted key.
      """,
    arguments: [
      ArgumentSpec("KEY", help: "A public key of Ed25519, in base64.", arity: .optional)
    ]
  ) { arguments in
    let manager = try await missions(arguments)
    if let text = arguments.stringIfPresent("KEY") {
      guard let key = Data(base64Encoded: text), key.count == 32 else {
        throw UsageError(
          .invalidValue, "'\(text)' is not a key", why: "a public key of Ed25519 has 32 bytes",
          next: "give the key that `ferryd mission key` prints")
      }
      try await manager.trust(Array(key))
    }
    let keys = try await manager.signers().map { Data($0).base64EncodedString() }
    try TextOutput.standardOutput.lines(
      arguments.flag("json")
        ? [JSONText.object([("trusted", .array(keys.map { .string($0) }))]).text] : keys)
    return .done
  }

  // MARK: Parts

  /// Returns the missions of the replica named on the command line.
  static func missions(_ arguments: ParsedArguments) async throws -> MissionManager {
    try await missions(of: try await FerryCommand.open(arguments), arguments)
  }

  /// Returns the missions of a replica, with limits of silence and bandwidth.
  ///
  /// - Parameters:
  ///   - silence: The longest silence of the server.
  ///   - rate: The most bytes a second to receive; `nil` for no limit.
  static func missions(
    of replica: Replica, _ arguments: ParsedArguments, silence: Duration = .seconds(30),
    rate: Int? = nil
  ) async throws -> MissionManager {
    guard rate != 0 else {
      throw UsageError(
        .invalidValue, "the rate 0 would stop every download", why: "--limit-rate is 0",
        next: "give a rate such as 512KiB, or omit --limit-rate for full speed")
    }
    var configuration = try FerryCommand.network(arguments)
    configuration.bandwidth = BandwidthLimits(receiving: rate)
    var options = MissionOptions()
    options.silence = silence
    options.allowsPrivateAddresses = arguments.flag(allowPrivateAddresses.name)
    return try await replica.missionManager(
      options: options, key: try MissionKeyFile.key(arguments),
      transport: SystemTransport(configuration: configuration),
      restores: false)
  }

  static func missionID(_ text: String) throws -> MissionID {
    guard let id = MissionID(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not a mission's identifier",
        why: "it has letters, digits, dots, dashes and underscores, 128 at most",
        next: "`ferry mission list` lists the identifiers")
    }
    return id
  }

  static func missionID(_ arguments: ParsedArguments) throws -> MissionID {
    try missionID(try arguments.string("ID"))
  }

  private static func change(
    _ arguments: ParsedArguments, _ done: String,
    _ body: (MissionManager, MissionID) async throws -> Void
  ) async throws -> ExitStatus {
    let id = try missionID(arguments)
    let manager = try await missions(arguments)
    try await body(manager, id)
    let state = try? await manager.mission(id).state
    try TextOutput.standardOutput.line(
      arguments.flag("json")
        ? JSONText.object([
          ("mission", .string(id.value)), ("state", .string(orNull: state?.rawValue)),
        ]).text
        : "mission \(id) \(done)")
    return .done
  }
}

extension MissionStatus {
  /// True if the mission is being fetched, waits for its turn, or is paused.
  var isUnderWay: Bool {
    switch state {
    case .ready, .downloading, .paused: true
    case .cancelled, .failed, .done, nil: false
    }
  }
}

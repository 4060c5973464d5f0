import FerryCommandLine
import FerryMissionServer
import FerryProtocol
import FerrySyncServer

/// `ferryd mission …`.
enum MissionCommands {
  static let root = CommandSpec(
    "mission", summary: "Publish folders of files that devices download and keep.",
    discussion: """
      The commands work on the store, even while a server runs. With --server they ask a server \
      instead, with a token of the role admin.
      """,
    options: ContentOptions.options + targetOptions,
    subcommands: [publish, list, show, retract, key, collect],
    examples: [
      ExampleSpec("Publish a folder", "ferryd mission publish city-tour/ --space tours"),
      ExampleSpec(
        "Publish to a server elsewhere",
        "ferryd mission publish tour.json --space tours --server https://sync.example.org"),
    ])

  /// The options for the name of a server to ask instead of the store.
  static let targetOptions =
    [
      OptionSpec(
        "server", value: "URL", help: "Ask this server instead of working on the store."),
      OptionSpec(
        "ca", value: "FILE",
        help: "A PEM file of certificate authorities to trust, for --server.", kind: .file,
        environment: "FERRY_CA"),
    ] + TokenOptions.options("An admin's token, for --server.")

  static let spaceOption = OptionSpec(
    "space", value: "NAME", help: "The space of the mission.", required: true)

  static let list = CommandSpec(
    "list", summary: "List a space's missions.", options: [spaceOption],
    flags: [JSONOption.flag]
  ) { arguments in
    try await MissionTargets.with(arguments) { target in
      var list = ListOutput(
        "missions", ["MISSION", "VERSION", "ITEMS", "SIZE", "PRIORITY", "PUBLISHED", "TITLE"],
        isJSON: arguments.flag("json"),
        none:
          "no mission is published in space \(target.name): `ferryd mission publish DIR --space "
          + "\(target.name)` publishes a folder")
      try await target.forEachPage { records in
        try list.add(
          records.map { record in
            (
              [
                record.id.value, String(record.version), String(record.items), record.sizeText,
                String(record.priority), RFC3339.text(milliseconds: record.publishedAt),
                record.title,
              ], record.json
            )
          })
      }
      try list.finish()
    }
    return .done
  }

  static let show = CommandSpec(
    "show", summary: "Show a mission and its items.", options: [spaceOption],
    flags: [
      JSONOption.flag,
      FlagSpec("verify", help: "Hash the stored content, and list damaged items."),
    ],
    arguments: [idArgument]
  ) { arguments in
    let id = try id(try arguments.string("id"))
    var damaged: [String] = []
    try await MissionTargets.with(arguments) { target in
      let (record, document) = try await target.show(id)
      let manifest = try MissionReport.manifest(document, of: record)
      if arguments.flag("verify") { damaged = try await target.damaged(manifest) }
      try MissionReport.show(record, manifest, damaged, isJSON: arguments.flag("json"))
    }
    return damaged.isEmpty ? .done : .failed
  }

  static let retract = CommandSpec(
    "retract", summary: "Retract a mission: no device can download it after its next pull.",
    discussion: "A mission that a device has downloaded stays there until `ferry mission remove`.",
    options: [spaceOption], flags: [JSONOption.flag], arguments: [idArgument]
  ) { arguments in
    let id = try id(try arguments.string("id"))
    try await MissionTargets.with(arguments) { target in
      try await target.retract(id)
      let answer = JSONText.object([("retracted", .string(id.value))])
      try TextOutput.standardOutput.line(
        arguments.flag("json") ? answer.text : "retracted \(id)")
    }
    return .done
  }

  static let key = CommandSpec(
    "key", summary: "Show the public key that signs missions; it is created if absent.",
    discussion: "Devices that know this key need not trust the first key that they see.",
    flags: [JSONOption.flag]
  ) { arguments in
    try refuseServer(arguments)
    try await LocalMissions.withContent(arguments) { _, content in
      let desk = try content.desk(createsIfMissing: !content.isNamed)
      let key = Base64.text(try await desk.signingKey().publicKey)
      let answer = JSONText.object([("publicKey", .string(key))])
      try TextOutput.standardOutput.line(arguments.flag("json") ? answer.text : key)
    }
    return .done
  }

  static let collect = CommandSpec(
    "collect", summary: "Remove content that no mission needs any more.",
    discussion: """
      `ferryd serve` does this automatically, and can run at the same time. Replaced versions stay \
      readable for a week, so that running downloads can complete.
      """,
    options: [
      OptionSpec(
        "keep", value: "TIME", help: "How long former versions, and unfinished uploads, are kept.",
        kind: .duration, default: "7d")
    ],
    flags: [JSONOption.flag]
  ) { arguments in
    try refuseServer(arguments)
    let grace = Retention(try arguments.duration("keep")).milliseconds ?? 0
    try await LocalMissions.withContent(arguments) { store, content in
      var result = BlobCollector.Result()
      // If nothing was ever published, there is nothing to remove.
      if content.isNamed || content.exists {
        let collector = BlobCollector(
          store: store, blobs: try content.desk().blobs, clock: .system,
          log: try LogOptions.log(arguments))
        result = try await collector.collect(grace: grace)
      }
      let answer = JSONText.object([
        ("files", .int(Int64(result.files))), ("bytes", .int(result.bytes)),
        ("unfinished", .int(Int64(result.unfinished))),
      ])
      try TextOutput.standardOutput.line(
        arguments.flag("json")
          ? answer.text
          : "removed \(result.files.counted("file")) (\(ByteSize(bytes: Int(result.bytes)).text)) "
            + "and " + result.unfinished.counted("unfinished upload"))
    }
    return .done
  }

  /// Refuses `--server`: these commands would ignore it and work on the local store.
  private static func refuseServer(_ arguments: ParsedArguments) throws(UsageError) {
    guard arguments.stringIfPresent("server") != nil else { return }
    throw UsageError(
      .unexpectedValue, "this command does not support --server",
      why: "it needs the store with its content and key",
      next: "run it on the server, with the same --data or --database as `ferryd serve`")
  }

  static let idArgument = ArgumentSpec("id", help: "The mission's name.")

  /// Reads a mission's name from the command line.
  static func id(_ text: String) throws(UsageError) -> MissionID {
    guard let id = MissionID(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' cannot be a mission's name",
        why: "a name has 1 to 128 characters of A–Z a–z 0–9 . _ -, the first a letter or digit",
        next: "choose such a name; `ferryd mission publish` takes it as --id")
    }
    return id
  }
}

extension Base64 {
  static func text(_ bytes: [UInt8]) -> String {
    var encoded: [UInt8] = []
    bytes.withUnsafeBytes { append($0, to: &encoded) }
    return String(decoding: encoded, as: UTF8.self)
  }
}

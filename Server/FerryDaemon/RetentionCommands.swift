import FerryCommandLine
import FerryProtocol
import FerrySyncServer

extension SpaceCommands {
  static let show = CommandSpec(
    "show", summary: "Show one space.", flags: [JSONOption.flag], arguments: [nameArgument]
  ) { arguments in
    try await withSpace(arguments) { _, space in try show(space, arguments) }
    return .done
  }

  static let set = CommandSpec(
    "set", summary: "Set how long a space keeps its history.",
    discussion: """
      A device that was away for longer than the retention pulls all records again at its next \
      sync, and keeps its pending operations. New spaces keep 90 days. Pruned history does not \
      return when the retention becomes longer. Less than 14 days is too little for a space if its \
      server or devices may be restored from a backup: operations that are sent again after they \
      were pruned count again.
      """,
    options: [
      OptionSpec(
        "retention", value: "TIME|forever",
        help: "How long history, tombstones and buffered packets are kept.", required: true)
    ],
    flags: [JSONOption.flag], arguments: [nameArgument],
    examples: [
      ExampleSpec("Keep half a year", "ferryd space set notes --retention 180d")
    ]
  ) { arguments in
    let retention = try retention(try arguments.string("retention"))
    try await withSpace(arguments) { store, space in
      try await store.setRetention(retention, of: space.id, by: CommandMark.now)
      let changed = try await store.space(named: space.name) ?? space
      try show(changed, arguments)
    }
    if retention.isShort {
      try TextOutput.standardError.lines([
        "ferryd: this retention is shorter than the 14 days that devices keep sent operations",
        "  why: after a restore from a backup devices send them again; if they were pruned, "
          + "increments count twice and deleted records return",
        "  next: keep 14d or more, unless you never restore a server or a device",
      ])
    }
    return .done
  }

  static let prune = CommandSpec(
    "prune", summary: "Delete history older than the retention now.",
    discussion: """
      `ferryd serve` does this automatically, and can run at the same time. The history's age is \
      known to a tenth of the retention, and to an hour at best; --older-than 0s deletes all of \
      it.
      """,
    options: [
      OptionSpec(
        "older-than", value: "TIME", help: "The age to use in place of the space's retention.",
        kind: .duration)
    ],
    flags: [JSONOption.flag], arguments: [nameArgument]
  ) { arguments in
    let age = try arguments.durationIfPresent("older-than")
    try await withSpace(arguments) { store, space in
      let retention = age.map { Retention($0) } ?? space.retention
      let result = try await prune(space, of: store, keeping: retention, arguments)
      guard !result.isBusy else { throw busy }
      try await store.append(
        CommandMark.now.entry(
          .spacePruned, space: space.name,
          "up to \(result.horizon.retentionHorizon), kept \(retention.text)"))
      try report(result, arguments)
    }
    return .done
  }

  static let nameArgument = ArgumentSpec("name", help: "The space's name.")

  private static let busy = CommandFailure(
    "the space is not completely pruned", why: "a server is pruning it at this moment",
    next: "run the command again in a minute", code: "prune_busy")

  static func withSpace(
    _ arguments: ParsedArguments,
    _ body: (any SyncStore, SpaceSummary) async throws -> Void
  ) async throws {
    let name = try name(try arguments.string("name"))
    try await StoreOptions.withStore(arguments) { store, _ in
      guard let space = try await store.space(named: name) else {
        throw CommandFailure(
          "there is no space \(name)", why: "no space has this name",
          next: "see `ferryd space list`, or create it with `ferryd space create \(name)`",
          code: "unknown_space")
      }
      try await body(store, space)
    }
  }

  private static func retention(_ text: String) throws(UsageError) -> Retention {
    if text == "forever" { return .forever }
    guard let duration = Duration(commandLine: text), duration >= .seconds(1) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not a retention",
        why: "--retention takes a time of a second or more with its unit, or the word forever",
        next: "write 90d, 36h or forever")
    }
    return Retention(duration)
  }

  private static func prune(
    _ space: SpaceSummary, of store: any SyncStore, keeping retention: Retention,
    _ arguments: ParsedArguments
  ) async throws -> PruneResult {
    let bar = ProgressBar("prune", unit: .items("operations"))
    defer { bar.finish() }
    let pruner = Pruner(
      store: store, clock: .system, metrics: ServiceMetrics(),
      log: try LogOptions.log(arguments), pace: Pruner.Pace(pause: .milliseconds(5)))
    var first: SequenceNumber?
    let result = try await pruner.prune(space, keeping: retention) { progress in
      let start = first ?? progress.reached
      first = start
      bar.update(completed: progress.reached - start, total: progress.end - start)
    }
    try await pruner.reclaim()
    return result
  }

  private static func show(_ space: SpaceSummary, _ arguments: ParsedArguments) throws {
    let output = TextOutput.standardOutput
    if arguments.flag("json") { return try output.line(space.json.text) }
    try output.lines([
      "space      \(space.name)", "epoch      \(space.epoch)", "head       \(space.head.grouped)",
      "horizon    \(space.retentionHorizon.grouped)", "retention  \(space.retention.text)",
    ])
  }

  private static func report(_ result: PruneResult, _ arguments: ParsedArguments) throws {
    let (rows, output) = (result.rows, TextOutput.standardOutput)
    guard arguments.flag("json") else {
      return try output.line(
        "pruned \(rows.operations.counted("operation")), \(rows.tombstones.counted("tombstone")) "
          + "and \(rows.buffered.counted("buffered packet")); the history begins after "
          + result.horizon.retentionHorizon.grouped
      )
    }
    let answer = JSONText.object([
      ("operations", .int(Int64(rows.operations))), ("tombstones", .int(Int64(rows.tombstones))),
      ("buffered", .int(Int64(rows.buffered))),
      ("retentionHorizon", .string(String(result.horizon.retentionHorizon))),
      ("head", .string(String(result.horizon.head))),
    ])
    try output.line(answer.text)
  }
}

extension Retention {
  /// Rounded down to milliseconds.
  init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self.init(milliseconds: seconds * 1_000 + attoseconds / 1_000_000_000_000_000)
  }

  /// As `--retention` takes it, in the largest exact unit.
  var text: String {
    guard let milliseconds else { return "forever" }
    for (unit, scale) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)]
    where milliseconds % Int64(scale) == 0 {
      return "\(milliseconds / Int64(scale))\(unit)"
    }
    return "\(milliseconds)ms"
  }
}

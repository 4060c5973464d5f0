import Ferry
import FerryCommandLine
import FerryPlatform
import Foundation
import Synchronization

/// `ferry push`, `pull` and `sync`.
enum SyncCommands {
  static let push = CommandSpec(
    "push", summary: "Send pending operations to the server.",
    discussion: """
      First applies the changes that this replica lacks, then sends its pending operations. Each \
      operation takes effect exactly once, even if it is sent several times.
      """,
    options: [MissionCommands.missionKeyFile]
  ) { arguments in
    try await exchangeSpaces(arguments) {
      try await $0.push(progress: $1)
    } all: {
      try await $0.spaces.push(progress: $1)
    }
  }

  static let pull = CommandSpec(
    "pull", summary: "Apply the server's changes that this replica lacks.",
    discussion: "All changes appear at once when the last page has arrived, or not at all.",
    options: [MissionCommands.missionKeyFile]
  ) { arguments in
    try await exchangeSpaces(arguments) {
      try await $0.pull(progress: $1)
    } all: {
      try await $0.spaces.pull(progress: $1)
    }
  }

  static let sync = CommandSpec(
    "sync", summary: "Pull and push; with --watch, sync continuously until interrupted.",
    discussion: """
      With --watch a live connection reports remote changes, and local writes (including those of \
      other processes) are sent at once. If the server cannot be reached, ferry retries with \
      growing pauses. Interrupt it with Ctrl-C.

      All spaces of the file are exchanged, each with a line of its own; with --in, one of them. A \
      space that fails does not stop the others.

      With --key-file, outcomes of bundles whose missions are encrypted are reported, too.
      """,
    options: [MissionCommands.missionKeyFile],
    flags: [FlagSpec("watch", short: "w", help: "Sync continuously until interrupted.")]
  ) { arguments in
    guard arguments.flag("watch") else {
      return try await exchangeSpaces(arguments) {
        try await $0.sync(progress: $1)
      } all: {
        try await $0.spaces.sync(progress: $1)
      }
    }
    let (replica, watched) = try await openToWatch(arguments)
    let bundles = try await BundleCommands.bundlesInUse(of: replica, arguments)
    defer { withExtendedLifetime(bundles) {} }
    let asJSON = arguments.flag("json")
    let names = Mutex(watched)
    do {
      try await replica.spaces.watch { space, event in
        let isOneOfSeveral = names.withLock { names in
          if let space { names.insert(space) }
          return names.count > 1
        }
        try? report(event, of: isOneOfSeveral ? space : nil, asJSON: asJSON)
      }
    } catch ReplicaError.cancelled {
      // An interruption is the normal end of a watch.
    }
    return .done
  }

  /// Opens the replica for a watch, as soon as no other program locks the file any more. Returns it
  /// with the names of the spaces: a file with one space needs no name on each line.
  private static func openToWatch(
    _ arguments: ParsedArguments
  ) async throws -> (Replica, Set<String>) {
    while true {
      do {
        let replica = try await FerryCommand.openForServer(arguments)
        var watched = Set<String>()
        for one in try await [replica] + replica.spaces.replicas() {
          if let name = try await one.server()?.space.value { watched.insert(name) }
        }
        return (replica, watched)
      } catch let error as ReplicaError where error.isBusy {
        try report(.offline(error), of: nil, asJSON: arguments.flag("json"))
        try Task.checkCancellation()
      }
    }
  }

  /// Exchanges all spaces of the file with a line for each, or the space named on the command line.
  private static func exchangeSpaces(
    _ arguments: ParsedArguments,
    one:
      @Sendable (Replica, @escaping @Sendable (SyncProgress) -> Void) async throws -> SyncReport,
    all:
      @Sendable (Replica, @escaping @Sendable (SyncProgress) -> Void) async throws -> [SpaceSync]
  ) async throws -> ExitStatus {
    let replica = try await FerryCommand.openForServer(arguments)
    let bundles = try await BundleCommands.bundlesInUse(of: replica, arguments)
    defer { withExtendedLifetime(bundles) {} }
    let joined = try await replica.spaces.joined()
    if arguments.stringIfPresent("in") != nil || joined.isEmpty {
      return try await exchange(replica, arguments, one)
    }
    let progress = ProgressBar("syncing", unit: .items("changes"))
    let results = try await all(replica) {
      progress.update(
        $0.phase.rawValue, completed: Int64($0.completed), total: Int64($0.total))
    }
    progress.finish()
    var status = ExitStatus.done
    for space in results {
      let name = space.space ?? "?"
      switch space.result {
      case .success(let report):
        try TextOutput.standardOutput.line(
          arguments.flag("json") ? report.json(of: name).text : "\(name): \(report.text)")
        if report.pulled > 0 { try? await replica.spaces.replica(of: name).reportApplied() }
        let isJoined = joined.contains(name)
        let verdict = try await verdict(
          replica.spaces.replica(of: name), after: report, in: isJoined ? name : nil)
        if status == .done { status = verdict }
      case .failure(let error):
        let failure = CommandHint.failure(
          error.commandFailure, in: joined.contains(name) ? name : nil)
        try TextOutput.standardError.lines([failure.text(program: "ferry: space \(name)")])
        if status == .done || status == .needsUser { status = failure.status }
      }
    }
    return status
  }

  private static func exchange(
    _ replica: Replica, _ arguments: ParsedArguments,
    _ work:
      @Sendable (Replica, @escaping @Sendable (SyncProgress) -> Void) async throws ->
      SyncReport
  ) async throws -> ExitStatus {
    let progress = ProgressBar("syncing", unit: .items("changes"))
    let clock = Task {
      while (try? await Task.sleep(for: .seconds(1))) != nil { progress.wait(for: "the server") }
    }
    defer { clock.cancel() }
    let report: SyncReport
    do {
      report = try await work(replica) {
        progress.update(
          $0.phase.rawValue, completed: Int64($0.completed), total: Int64($0.total))
      }
    } catch {
      progress.finish()
      _ = try? await UploadCommands.reportUnsent(replica, in: arguments.stringIfPresent("in"))
      guard let url = try? await replica.status().server?.url else { throw error }
      let check = SchemeCheck(
        transport: SystemTransport(configuration: try FerryCommand.network(arguments)))
      throw await check.explaining(error, url: url)
    }
    progress.finish()
    if report.pulled > 0 { try? await replica.reportApplied() }
    try TextOutput.standardOutput.line(arguments.flag("json") ? report.json.text : report.text)
    return try await verdict(replica, after: report, in: arguments.stringIfPresent("in"))
  }

  /// Returns `done`, unless records wait for the user or operations for the next sync.
  ///
  /// - Parameter space: the space to name in the commands of hints; `nil` for the first one.
  private static func verdict(
    _ replica: Replica, after report: SyncReport, in space: String?
  ) async throws -> ExitStatus {
    let verdict = try await verdict(replica, in: space)
    guard report.left > 0 else { return verdict }
    try TextOutput.standardError.lines([
      "ferry: \(report.left.counted("operation")) did not reach the server yet",
      "  why: during this sync the server lost history, or a copy of this replica wrote",
      "  next: your changes are safe in the replica; run `ferry sync` again",
    ])
    return verdict == .done ? .unreachable : verdict
  }

  /// Returns `done`, unless records wait for the user.
  private static func verdict(
    _ replica: Replica, in space: String?
  ) async throws -> ExitStatus {
    func printHints(_ lines: [String]) throws {
      try TextOutput.standardError.lines(CommandHint.lines(lines, in: space))
    }
    let status = try await replica.status()
    var clashes: [NameClash] = []
    if status.toApply > status.deferred {
      clashes = try await replica.nameClashes()
      let waiting = WaitingTables(
        waitedFor: try await replica.tablesWaitedFor(), tracked: status.tables,
        existing: try await SchemaEntry.tables(in: replica), clashes: clashes)
      try printHints(waiting.lines(changes: status.toApply - status.deferred))
    }
    if status.quarantined > 0 {
      let reasons = try await QuarantineCommands.quarantineReasons(replica)
      try printHints(
        [
          "ferry: in quarantine: \(status.quarantined.counted("operation"))",
          "  why: \(status.quarantined == 1 ? "it was" : "they were") rejected or overruled; all other "
            + "changes are synced",
        ] + reasons + [
          "  next: `ferry quarantine list` lists all reasons; retry, edit or discard the entries"
        ])
    }
    if status.questions > 0 {
      try printHints([
        "ferry: \(status.questions.counted("conflict")) for you to decide",
        "  why: devices wrote the same values concurrently, and the schema lets you decide; or two records "
          + "have one unique value",
        "  next: `ferry conflicts --open` lists them; answer with `ferry resolve ID --keep local|remote`, or "
          + "with `--set COLUMN=VALUE`",
      ])
    }
    try Self.reportFaults(status.tableFaults, in: space)
    let isUnsent = try await UploadCommands.reportUnsent(replica, in: space)
    let needsUser =
      status.quarantined > 0 || status.questions > 0 || isUnsent || !status.tableFaults.isEmpty
      || !clashes.isEmpty
    return try reportDeferred(status.deferred - status.keptLocal, in: space) || needsUser
      ? .needsUser : .done
  }

  /// Reports records rejected by the tables of this file. Returns true if there are any.
  static func reportDeferred(_ count: Int, in space: String?) throws -> Bool {
    guard count > 0 else { return false }
    let lines = [
      "ferry: \(count.counted("record")) could not be applied here",
      "  why: the tables of this replica reject it (a constraint or a foreign key)",
      "  next: `ferry to-apply` lists the reasons; repair the tables and sync again",
    ]
    try TextOutput.standardError.lines(CommandHint.lines(lines, in: space))
    return true
  }

  /// Names tables that cannot be synced or compared.
  ///
  /// - Parameter space: the space to name in the commands of hints; `nil` for the first one.
  static func reportFaults(_ faults: [TableFault], in space: String? = nil) throws {
    for fault in faults.prefix(BoundedList.shown) {
      let lines = [
        "ferry: table \(fault.local) is not synced".escapedForTerminal,
        "  why: \(fault.reason)".escapedForTerminal,
        "  next: repair the table, or stop recording it: `"
          + SuggestedCommand.line("ferry untrack", [fault.local.text], or: "TABLE") + "`",
      ]
      try TextOutput.standardError.lines(CommandHint.lines(lines, in: space))
    }
    let rest = faults.count - BoundedList.shown
    guard rest > 0 else { return }
    let lines = [
      "ferry: \(rest.counted("more table")) \(rest == 1 ? "is" : "are") not synced",
      "  next: `ferry status` lists them",
    ]
    try TextOutput.standardError.lines(CommandHint.lines(lines, in: space))
  }

  /// - Parameter space: the event's space; `nil` if the file has no other.
  private static func report(
    _ event: Replica.WatchEvent, of space: String?, asJSON: Bool
  ) throws {
    let output = TextOutput.standardOutput
    let time = Presentation.time(Int64(Date().timeIntervalSince1970 * 1000))
    let place = space.map { "\($0): " } ?? ""
    switch event {
    case .synced(let report):
      if report.summary == nil { return }
      let json = space.map { report.json(of: $0) } ?? report.json
      try output.line(asJSON ? json.text : "\(time)  \(place)\(report.text)")
    case .offline(let error):
      let state = error.isBusy ? "busy" : error.isTransient ? "offline" : "waiting"
      try TextOutput.standardError.line("\(time)  \(place)\(state): \(error); trying again")
    case .connected:
      if !asJSON { try TextOutput.standardError.line("\(time)  \(place)connected") }
    case .stopped(let space, let error):
      try TextOutput.standardError.line(
        "\(time)  space \(space) has stopped: \(error)".escapedForTerminal)
    }
  }
}

extension SyncReport {
  fileprivate var json: JSONText { .object(members) }

  fileprivate func json(of space: String) -> JSONText {
    .object([("space", .string(space))] + members)
  }

  private var members: [(String, JSONText)] {
    [
      ("pushed", .int(pushed)), ("pulled", .int(pulled)), ("duplicates", .int(duplicates)),
      ("buffered", .int(buffered)), ("refused", .int(refused)), ("quarantined", .int(quarantined)),
      ("left", .int(left)), ("recorded", .int(recorded)), ("conflicts", .int(conflicts)),
      ("questions", .int(questions)),
      ("cursor", .string(orNull: cursor?.description)), ("trace", .string(orNull: trace)),
    ]
  }

  fileprivate var text: String {
    parts.isEmpty
      ? "nothing to exchange"
      : parts.map { "\($0.count.grouped) \($0.name)" }.joined(separator: ", ")
  }
}

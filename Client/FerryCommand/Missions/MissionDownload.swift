import Ferry
import FerryCommandLine

/// `ferry mission download` and `resume`.
enum MissionDownload {
  static let watchFlag = FlagSpec(
    "watch", short: "w", help: "Wait without a limit for a connection or for disk space.")
  static let patience = OptionSpec(
    "wait", value: "TIME", help: "How long to wait without a connection.", kind: .duration,
    default: "30s")

  static let timeout = OptionSpec(
    "timeout", value: "TIME", help: "How long the server may be silent before it is asked again.",
    kind: .duration, default: "30s")

  /// The pause between two checks of the disk space.
  private static let roomPause = Duration.seconds(5)

  static let limitRate = OptionSpec(
    "limit-rate", value: "SIZE",
    help: "The largest number of received bytes a second, such as 2MiB.",
    kind: .byteSize)

  /// Opens the replica with a deadline for each request, and pulls the catalogue if the server can
  /// be reached: the catalogue of the last sync may be enough.
  static func openPulled(
    _ arguments: ParsedArguments, silence: Duration
  ) async throws -> Replica {
    let replica = try await FerryCommand.openForServer(
      arguments,
      transport: DeadlineTransport(
        SystemTransport(configuration: try FerryCommand.network(arguments)), patience: silence * 2))
    do {
      _ = try await replica.pull()
    } catch let error as ReplicaError where error.isTransient {}
    return replica
  }

  static let missionDownload = CommandSpec(
    "download", summary: "Download missions and their predecessors.",
    discussion: """
      Continues an earlier download at its place. Pulls the catalogue first, if the server can be \
      reached. Missions are fetched one after another, and the files of one mission in parallel. \
      With --json, each event is a line. Interrupted (Ctrl-C) it keeps the fetched content; `ferry \
      mission pause`, in another terminal, pauses a mission. Without a connection it gives up \
      after a while with status 3, and the fetched content is kept.
      """,
    options: [patience, timeout, limitRate],
    flags: [watchFlag, FlagSpec("all", help: "All published missions, new versions included.")],
    arguments: [
      ArgumentSpec(
        "ID", help: "The missions' identifiers.", kind: CompletedNames.missions.kind,
        arity: .zeroOrMore)
    ],
    examples: [
      ExampleSpec("Everything, however bad the network", "ferry mission download --all -w")
    ]
  ) { arguments in
    var ids = try arguments.strings("ID").map { try MissionCommands.missionID($0) }
    guard ids.isEmpty == arguments.flag("all") else {
      throw UsageError(
        ids.isEmpty ? .missingArgument : .unexpectedValue,
        ids.isEmpty ? "no mission is named" : "missions are named, and --all is given",
        why: "either some are downloaded or all", next: "name them, or give --all alone")
    }
    let silence = try silence(arguments)
    let replica = try await openPulled(arguments, silence: silence)
    let manager = try await MissionCommands.missions(
      of: replica, arguments, silence: silence,
      rate: try arguments.byteSizeIfPresent("limit-rate"))
    let isAll = arguments.flag("all")
    if isAll {
      // Bundles have a separate command; it knows the offered versions.
      ids = try await manager.list().filter {
        $0.publishedVersion != nil && BundleID(mission: $0.id) == nil
      }.map(\.id)
    }
    return try await fetch(ids, with: manager, arguments) {
      // A mission that can never start must not prevent the others.
      if isAll { try await manager.downloadPartly(ids) } else { try await manager.download(ids) }
    }
  }

  static let missionResume = CommandSpec(
    "resume", summary: "Resume missions that are paused or were interrupted.",
    options: [patience, timeout, limitRate], flags: [watchFlag],
    arguments: [
      ArgumentSpec(
        "ID", help: "The missions; by default all of them.", kind: CompletedNames.missions.kind,
        arity: .zeroOrMore)
    ]
  ) { arguments in
    let named = try arguments.strings("ID").map { try MissionCommands.missionID($0) }
    let manager = try await MissionCommands.missions(
      of: try await FerryCommand.openForServer(arguments), arguments,
      silence: try silence(arguments),
      rate: try arguments.byteSizeIfPresent("limit-rate"))
    let ids =
      named.isEmpty ? try await manager.list().filter(\.isUnderWay).map(\.id) : named
    return try await fetch(ids, with: manager, arguments) {
      for id in ids { try await manager.resume(id) }
    }
  }

  /// Returns the longest silence of the server: a short wait for a connection shortens it, too.
  static func silence(_ arguments: ParsedArguments) throws -> Duration {
    let timeout = try arguments.duration("timeout")
    if arguments.flag("watch") { return timeout }
    return min(timeout, max(try arguments.duration("wait"), .seconds(1)))
  }

  /// Starts the download, shows the events, and returns the result.
  private static func fetch(
    _ ids: [MissionID], with manager: MissionManager, _ arguments: ParsedArguments,
    begin: () async throws -> Void
  ) async throws -> ExitStatus {
    let found = try await watch(ids, with: manager, arguments, begin: begin)
    return try MissionEndings(found).report(asJSON: arguments.flag("json"))
  }

  /// Starts the download, shows the events until the end, and closes the manager. Returns the
  /// states of the missions.
  static func watch(
    _ ids: [MissionID], with manager: MissionManager, _ arguments: ParsedArguments,
    begin: () async throws -> Void
  ) async throws -> [MissionStatus] {
    let asJSON = arguments.flag("json")
    let display = MissionDisplay(asJSON: asJSON)
    let patience: Duration? = arguments.flag("watch") ? nil : try arguments.duration("wait")
    let events = manager.events()
    do {
      try await begin()
      try await withThrowingTaskGroup(of: Bool.self) { group in
        group.addTask {
          var rested = try await manager.waitUntilIdle(ids).filter(\.lacksRoom)
          while patience == nil, !rested.isEmpty {
            try await Task.sleep(for: roomPause)
            for mission in rested { try await manager.resume(mission.id) }
            rested = try await manager.waitUntilIdle(ids).filter(\.lacksRoom)
          }
          return true
        }
        group.addTask {
          for await event in events { display.show(event) }
          return false
        }
        if let patience {
          group.addTask {
            while !display.hasWaited(longerThan: patience) {
              // The task that waits for the missions reports an interruption.
              do { try await Task.sleep(for: .milliseconds(100)) } catch { return false }
            }
            return true
          }
        }
        while let isEnd = try await group.next(), !isEnd {}
        group.cancelAll()
      }
    } catch {
      display.finish()
      await manager.close()
      throw error
    }
    let found = try await manager.list().filter { ids.contains($0.id) }
    await manager.close()
    display.finish()
    return found
  }
}

extension MissionStatus {
  /// True if the mission is paused because the disk is full.
  fileprivate var lacksRoom: Bool { state == .paused && reason?.kind == .diskFull }
}

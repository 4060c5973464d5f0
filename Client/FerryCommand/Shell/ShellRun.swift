import Ferry
import FerryCommandLine
import FerryShell
import Foundation

/// One run of `ferry shell`.
struct ShellRun {
  private let arguments: ParsedArguments
  private let granted: [ServicePattern]
  private let presentation: ShellPresentation
  /// The replica of a published bundle, and the replica's missions.
  private let opened: (replica: Replica, missions: MissionManager)?

  init(
    _ arguments: ParsedArguments, on replica: Replica? = nil, with missions: MissionManager? = nil
  ) throws {
    self.arguments = arguments
    opened = if let replica, let missions { (replica, missions) } else { nil }
    presentation = ShellPresentation(asJSON: arguments.flag("json"))
    granted = try arguments.strings("grant").map { text in
      guard let pattern = ServicePattern(text) else {
        throw CommandFailure(
          "'\(text)' names no service",
          why: "a service is named like data.query, a group like data",
          next: "correct --grant", status: .usage, code: "bad_grant")
      }
      return pattern
    }
  }

  /// Shows a bundle until the user interrupts the command, or closes the window.
  ///
  /// - Parameter synced: called after each sync of a continuous one.
  func show(
    _ source: any BundleSource, synced: @escaping @Sendable () async -> Void = {}
  ) async throws -> ExitStatus {
    let replica = try await replica()
    let registry = ServiceRegistry(try await services(replica), granting: granted)
    if let pattern = registry.unknownGrants.first {
      throw CommandFailure(
        "there is no service '\(pattern)'",
        why: "the groups are data, missions, net and device",
        next: "correct --grant; Documentation/shell.md lists the services", status: .usage,
        code: "bad_grant")
    }
    let window = arguments.flag("window") ? try ShellWindow() : nil
    if let replica, arguments.flag("sync"), try await replica.status().server == nil {
      throw ReplicaError.notConfigured
    }
    let port = UInt16(try arguments.integer("port", in: 0...65_535))
    let shell = try FerryShell.Shell.start(source, services: registry, port: port) {
      [presentation] in
      presentation.show($0)
    }
    defer { shell.stop() }
    let version = try await source.next()
    try presentation.start(
      shell, version: version, withheld: registry.withheld(from: version.services))
    // The first page load requests its version by itself.
    await source.left(version)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await open(shell, in: window) }
      if let replica, arguments.flag("sync") {
        group.addTask {
          try await replica.watch(onEvent: { event in
            if case .synced = event { Task { await synced() } }
          })
          try await ShellRun.untilInterrupted()
        }
      }
      // The end of the first one ends the command: the window was closed, or a sync failed.
      do { try await group.next() } catch is CancellationError {} catch ReplicaError.cancelled {}
      group.cancelAll()
    }
    return .done
  }

  private func open(_ shell: FerryShell.Shell, in window: ShellWindow?) async throws {
    if let window { return try await window.show(shell) }
    var page: OpeningFile?
    if !arguments.flag("no-open") { page = try OpeningFile.open(shell.makeAddress()) }
    defer { page?.remove() }
    try await Self.untilInterrupted()
  }

  private static func untilInterrupted() async throws {
    while true { try await Task.sleep(for: .seconds(3_600)) }
  }

  // MARK: Services

  /// Opens the replica if a granted service needs it.
  private func replica() async throws -> Replica? {
    if let opened { return opened.replica }
    guard grants("data") || grants("missions") || arguments.flag("sync") else { return nil }
    return try await FerryCommand.open(arguments)
  }

  private func grants(_ group: String) -> Bool {
    granted.contains { $0.group == group }
  }

  private func services(_ replica: Replica?) async throws -> [Service] {
    var services = DeviceServices(app: "ferry", version: FerryCommand.version).all
    let transport = SystemTransport(configuration: try FerryCommand.network(arguments))
    services += NetworkServices(origins: try origins(), transport: transport).all
    guard let replica else { return services }
    let tables = arguments.strings("table")
    let data = DataServices(replica, tables: tables.isEmpty ? nil : tables.map { Name($0) })
    if let table = try await data.absentTables().first {
      throw CommandFailure(
        "there is no table '\(table)'",
        why: "--table names a table of the replica, and none of Ferry's own",
        next: "correct --table; .tables in `ferry sql` lists the tables",
        status: .usage, code: "no_table")
    }
    services += data.all
    if grants("missions") {
      services +=
        MissionServices(
          try await missions(of: replica, over: transport), replica: replica
        ).all
    }
    return services
  }

  private func missions(
    of replica: Replica, over transport: SystemTransport
  ) async throws -> MissionManager {
    if let opened { return opened.missions }
    var options = MissionOptions()
    options.allowsPrivateAddresses = arguments.flag(MissionCommands.allowPrivateAddresses.name)
    return try await replica.missionManager(
      options: options, key: try MissionKeyFile.key(arguments), transport: transport)
  }

  private func origins() throws -> [String] {
    let origins = arguments.strings("origin")
    for origin in origins where !NetworkServices.isOrigin(origin) {
      throw CommandFailure(
        "'\(origin)' is no server", why: "--origin has a scheme, a host and perhaps a port",
        next: "write it like https://api.example.org", status: .usage, code: "bad_origin")
    }
    return origins
  }
}

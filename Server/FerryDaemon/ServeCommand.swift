import FerryCommandLine
import FerryHTTPServer
import FerrySyncServer

extension DaemonCommands {
  static let serve = CommandSpec(
    "serve", summary: "Run the server until SIGTERM or SIGINT.",
    discussion: """
      Until the first token is created, and without --jwt-issuer, the server is open: every \
      request may do everything. It then listens on loopback only, unless --insecure is given, and \
      refuses requests from web pages and through proxies. At SIGTERM it accepts no more requests, \
      finishes those in progress, and ends with 0. At SIGHUP it reads the keys of --jwks and the file \
      of --log-level-file again, and looks up each token again.
      """,
    options: options + AccessOptions.options + ContentOptions.options + QuotaOptions.options
      + LogOptions.reloadable + TraceOptions.options,
    flags: [
      FlagSpec(
        "insecure",
        help: "Serve an address that others can reach although no tokens exist.",
        environment: "FERRY_INSECURE"),
      ContentOptions.redirectFlag,
    ],
    examples: [
      ExampleSpec("Take any free port, and print it", "ferryd serve --listen 127.0.0.1:0")
    ]
  ) { arguments in
    FileDescriptorLimit.raise()
    let hangUps = HangUps()
    var configuration = try configuration(arguments)
    configuration.content = try await ContentOptions.remoteStore(
      arguments, redirects: arguments.flag("content-redirect"))
    let log = configuration.log
    let levelFile = try LogOptions.openLevelFile(arguments, log)
    let server = try await FerryServer.start(configuration)
    try TextOutput.standardError.line(try announcement(server, arguments))
    let runners = try arguments.strings("mirror").map { name in
      try MirrorCommands.runner(name, arguments, configuration.mirrors)
    }
    await withTaskGroup { group in
      for runner in runners { group.addTask { await runner.run() } }
      group.addTask { [stream = hangUps.stream] in
        for await _ in stream {
          levelFile?.reload(log)
          await server.reload()
        }
      }
      await waitUntilCancelled()
    }
    hangUps.end()
    // Not in this task, which is cancelled: requests in progress shall still be finished.
    await Task.detached { await server.stop() }.value
    return .done
  }

  private static let options =
    [
      OptionSpec(
        "listen", value: "ADDRESS:PORT",
        help: "An address of this machine, or 0.0.0.0 for all; port 0 selects a free port.",
        default: "127.0.0.1:8080", environment: "FERRY_LISTEN"),
      OptionSpec(
        "threads", value: "N", help: "Threads that read and write sockets.",
        kind: .integer(1...256), default: "2", environment: "FERRY_THREADS"),
      OptionSpec(
        "connections", value: "N",
        help: "The largest number of connections; each listener to events uses one.",
        kind: .integer(1...1_000_000), default: "4096", environment: "FERRY_CONNECTIONS"),
      OptionSpec(
        "database-connections", value: "N",
        help: """
          Connections to a PostgreSQL database, and two more for notifications and checks; a share \
          of them is reserved for authentication, for pushes and for pulls.
          """,
        kind: .integer(1...1_000), default: "8", environment: "FERRY_DATABASE_CONNECTIONS"),
    ] + LoadOptions.options + [
      OptionSpec(
        "heartbeat", value: "TIME",
        help: "The interval between two heartbeats on a stream of events.",
        kind: .duration, default: "15s", environment: "FERRY_HEARTBEAT"),
      OptionSpec(
        "prune-interval", value: "TIME",
        help: "The interval between two runs that delete history older than the spaces' retention.",
        kind: .duration, default: "10m", environment: "FERRY_PRUNE_INTERVAL"),
      OptionSpec(
        "mirror", value: "NAME",
        help: "A mirror, or a group of mirrors, of this machine to run; see `ferryd mirror`.",
        environment: "FERRY_MIRROR", repeated: true),
      MirrorCommands.mirrorsOption,
      OptionSpec(
        "stop-grace", value: "TIME", help: "How long requests in progress may take at the end.",
        kind: .duration, default: "20s", environment: "FERRY_STOP_GRACE"),
      OptionSpec(
        "upload-quota", value: "SIZE",
        help: """
          The largest size of a space's unfinished uploads of missions' content; uploads without \
          progress are removed after a week.
          """,
        kind: .byteSize, default: "64GiB", environment: "FERRY_UPLOAD_QUOTA"),
    ]

  private static func configuration(
    _ arguments: ParsedArguments
  ) throws -> FerryServerConfiguration {
    let text = try arguments.string("listen")
    guard let listen = ListenAddress(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not an address to listen on",
        why: "--listen takes an IPv4 or IPv6 address and a port",
        next: "write 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080")
    }
    var configuration = FerryServerConfiguration(
      listen: listen, store: try StoreOptions.location(arguments),
      log: try LogOptions.log(arguments))
    configuration.isInsecure = arguments.flag("insecure")
    configuration.threads = try arguments.integer("threads")
    configuration.connectionLimit = try arguments.integer("connections")
    try LoadOptions.apply(arguments, to: &configuration)
    configuration.databaseConnections = try arguments.integer("database-connections")
    configuration.heartbeat = max(.milliseconds(100), try arguments.duration("heartbeat"))
    configuration.pruneInterval = max(.seconds(1), try arguments.duration("prune-interval"))
    configuration.stopGrace = try arguments.duration("stop-grace")
    configuration.blobs = arguments.stringIfPresent("blobs")
    configuration.missionKey = arguments.stringIfPresent("mission-key")
    configuration.uploadQuota = Int64(try arguments.byteSize("upload-quota"))
    configuration.quotas = try QuotaOptions.quotas(arguments)
    configuration.startWait = try arguments.duration("start-wait")
    try AccessOptions.apply(arguments, to: &configuration)
    configuration.tracer = try TraceOptions.tracer(arguments, configuration.log)
    return configuration
  }

  private static func announcement(
    _ server: FerryServer, _ arguments: ParsedArguments
  ) throws(FerryServerError) -> String {
    let access =
      switch (server.startedOpen, server.address.isLoopback) {
      case (false, _) where arguments.stringIfPresent("jwt-issuer") != nil:
        "tokens or JSON Web Tokens required"
      case (false, _): "tokens required"
      case (true, true): "open: no tokens exist"
      case (true, false): "open to all machines that can reach it: no tokens exist"
      }
    let store = try StoreOptions.location(arguments)
    return "ferryd: listening on http://\(server.address) (\(store), \(access))"
  }

  /// Returns when the command's task is cancelled, which a signal does.
  private static func waitUntilCancelled() async {
    let (never, continuation) = AsyncStream<Never>.makeStream()
    for await _ in never {}
    continuation.finish()
  }
}

import FerryCommandLine
import FerrySyncServer
import Foundation

/// The store of a command: `--database` or `--data`.
enum StoreOptions {
  static let options = [
    OptionSpec(
      "database", value: "URL",
      help: """
        The PostgreSQL database, postgres://user@host:port/name. On a command line, other users of \
        this machine see a password in `ps`: use FERRY_DATABASE, PGPASSWORD or ~/.pgpass.
        """,
      environment: "FERRY_DATABASE"),
    OptionSpec(
      "listen-url", value: "URL",
      help: """
        A direct address of the same database, if --database is a proxy that pools transactions \
        (pgbouncer): for notifications, the start and maintenance.
        """, environment: "FERRY_LISTEN_URL"),
    OptionSpec(
      "read-database", value: "URL",
      help: """
        A hot standby of --database, which serves pulls. It is never behind a commit that the \
        server has confirmed.
        """, environment: "FERRY_READ_DATABASE"),
    OptionSpec(
      "worker-database", value: "URL",
      help: """
        A worker of Citus, if --database is the coordinator: this node's packets, pulls and digests \
        go through it. Only `serve` uses it.
        """, environment: "FERRY_WORKER_DATABASE"),
    OptionSpec(
      "data", value: "DIR",
      help: """
        The embedded store's directory, created if absent; by default $XDG_STATE_HOME/ferryd, or \
        ~/.local/state/ferryd.
        """,
      kind: .directory, environment: "FERRY_DATA"),
    OptionSpec(
      "start-wait", value: "TIME",
      help: "How long to wait for a database that cannot be reached.", kind: .duration,
      default: "30s", environment: "FERRY_START_WAIT"),
  ]

  /// Returns the location of the store. The command line overrides the environment. If the
  /// environment names a database and a directory, the database counts: a container's image may
  /// name a directory.
  static func location(_ arguments: ParsedArguments) throws(FerryServerError) -> StoreLocation {
    var database = arguments.stringIfPresent("database")
    var data = arguments.stringIfPresent("data")
    let isDataTyped = arguments.source("data") == .commandLine
    func isTyped(_ option: String) -> Bool { arguments.source(option) == .commandLine }
    if database != nil, data != nil {
      if !isDataTyped { data = nil } else if !isTyped("database") { database = nil }
    }
    /// Further addresses of a database in the environment do not count beside a typed directory.
    func address(_ option: String) -> String? {
      isDataTyped && !isTyped(option) ? nil : arguments.stringIfPresent(option)
    }
    return try StoreLocation(
      database: database, direct: address("listen-url"), reads: address("read-database"),
      worker: address("worker-database"), data: data,
      environment: ProcessInfo.processInfo.environment)
  }

  /// Opens the store for one command, and closes it.
  ///
  /// - Parameter createsIfMissing: Whether a store is made if there is none. Only commands for the
  ///   content of a new store do so: others would answer for an empty store by mistake.
  static func withStore<Answer>(
    _ arguments: ParsedArguments, createsIfMissing: Bool = false,
    _ body: (any SyncStore, StoreLocation) async throws -> Answer
  ) async throws -> Answer {
    let location = try location(arguments).withoutWorker
    if !createsIfMissing { try check(location) }
    let opener = StoreOpener(
      location, createsIfMissing: createsIfMissing, patience: try arguments.duration("start-wait"),
      clock: .system,
      log: try LogOptions.log(arguments))
    let store = try await opener.open()
    do {
      let answer = try await body(store, location)
      await store.close()
      return answer
    } catch {
      await store.close()
      throw error
    }
  }

  /// Throws if the named directory holds no store.
  static func check(_ location: StoreLocation) throws(CommandFailure) {
    guard case .embedded(let directory) = location, !location.exists else { return }
    let isFolder = FileManager.default.fileExists(atPath: directory)
    throw CommandFailure(
      "there is no store in \(directory)",
      why: isFolder ? "the directory contains no ferry.sqlite" : "there is no such directory",
      next: "check --data (FERRY_DATA): `ferryd serve` uses the same directory; `ferryd space "
        + "create NAME` creates a new store",
      code: "no_store")
  }
}

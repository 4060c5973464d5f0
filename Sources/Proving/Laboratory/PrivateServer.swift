import FerryProtocol
import Foundation

/// The files and processes of one private PostgreSQL server.
final class PrivateServer: Sendable {
  let directory: String
  private let port: UInt16
  private let installation: PostgresInstallation
  private let watchdog: ClusterWatchdog

  private var data: String { "\(directory)/data" }
  private var log: String { "\(directory)/log" }

  /// Creates a cluster and starts it, on another port if the first is in use meanwhile.
  init() throws {
    installation = try PostgresInstallation.find()
    directory = try Self.makeDirectory(installation)
    port = try FreePort.next()
    let data = "\(directory)/data"
    watchdog = try ClusterWatchdog(
      directory: directory,
      stop: installation.commandLine("pg_ctl", ["stop", "-D", data, "-m", "immediate", "-s"]))
    try run(
      "initdb",
      [
        "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8",
        "--no-sync", "--no-instructions",
      ])
    try configure()
    try start()
  }

  /// Creates a hot standby of a running server, which follows it from now on.
  init(standbyOf primary: PrivateServer) throws {
    installation = primary.installation
    directory = try Self.makeDirectory(installation)
    port = try FreePort.next()
    watchdog = try ClusterWatchdog(
      directory: directory,
      stop: installation.commandLine(
        "pg_ctl", ["stop", "-D", "\(directory)/data", "-m", "immediate", "-s"]))
    try run(
      "pg_basebackup",
      ["-d", primary.url(database: "postgres"), "-D", data, "-R", "--checkpoint=fast", "--no-sync"])
    // The last setting of a name counts.
    try append("port = \(port)\nunix_socket_directories = \(quoted(literal: directory))\n")
    try start()
  }

  /// Makes a standby a primary. Returns when it takes writes.
  func promote() throws { try run("pg_ctl", ["promote", "-D", data, "-w", "-s", "-t", "600"]) }

  func url(database: String) -> String { "postgres://postgres@127.0.0.1:\(port)/\(database)" }

  func start() throws {
    do {
      try run("pg_ctl", ["start", "-D", data, "-l", log, "-w", "-s", "-t", "600"])
    } catch {
      let reason = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
      throw TestSupportError("\(error); \(reason.suffix(2000))")
    }
  }

  func stop(_ shutdown: PostgresCluster.Shutdown, within limit: Duration) throws {
    let seconds = String(max(1, limit.components.seconds))
    try run("pg_ctl", ["stop", "-D", data, "-m", shutdown.rawValue, "-w", "-s", "-t", seconds])
  }

  /// Sends a signal to the server and all processes of it.
  func signal(_ signal: Int32) {
    guard let server = processID else { return }
    // The server first: it starts no more processes then.
    for process in [server] + children(where: { _ in true }) { kill(process, signal) }
  }

  private var processID: Int32? {
    let file = try? String(contentsOfFile: "\(data)/postmaster.pid", encoding: .utf8)
    return file?.split(separator: "\n").first.flatMap { Int32($0) }
  }

  /// Returns the server's own child processes with a wanted command line, as they set it
  /// themselves.
  func children(where isWanted: (String) -> Bool) -> [Int32] {
    guard let server = processID else { return [] }
    let children = "/proc/\(server)/task/\(server)/children"
    let list = (try? String(contentsOfFile: children, encoding: .utf8)) ?? ""
    return list.split(separator: " ").compactMap { Int32($0) }.filter { child in
      let line = try? String(contentsOfFile: "/proc/\(child)/cmdline", encoding: .utf8)
      return line.map(isWanted) ?? false
    }
  }

  private func configure() throws {
    try append(
      """

      port = \(port)
      listen_addresses = '127.0.0.1'
      unix_socket_directories = \(quoted(literal: directory))
      max_connections = 500
      wal_level = logical
      max_replication_slots = 200
      max_wal_senders = 200
      fsync = on
      synchronous_commit = on

      """)
    let access = URL(filePath: "\(data)/pg_hba.conf")
    let rules = try String(contentsOf: access, encoding: .utf8)
    let password = "host all \(PostgresCluster.passwordRole) 127.0.0.1/32 scram-sha-256\n"
    let rewritten = try FileHandle(forWritingTo: access)
    try rewritten.write(contentsOf: Data((password + rules).utf8))
    try rewritten.close()
  }

  private func append(_ settings: String) throws {
    let file = URL(filePath: "\(data)/postgresql.conf")
    let handle = try FileHandle(forWritingTo: file)
    try handle.seekToEnd()
    try handle.write(contentsOf: Data(settings.utf8))
    try handle.close()
  }

  private func run(_ program: String, _ arguments: [String]) throws {
    let command = installation.commandLine(program, arguments)
    let (status, output) = try ProcessSpawner.runToEnd(
      SpawnRequest(
        executable: command[0], arguments: Array(command.dropFirst()),
        environment: ["LC_ALL": "C.UTF-8"], directory: directory))
    guard status == 0 else {
      throw TestSupportError("\(program) failed with status \(status): \(output)")
    }
  }

  /// Returns `true` if a socket fits below a folder: the path has at most 107 bytes.
  private static func isShort(_ folder: String) -> Bool { (1...60).contains(folder.utf8.count) }

  /// Returns `true` if another user may enter a folder.
  private static func isOpenToAll(_ folder: String) -> Bool {
    var status = stat()
    return stat(folder, &status) == 0 && status.st_mode & 0o005 == 0o005
  }

  /// Creates a directory writable only by the user that runs PostgreSQL.
  private static func makeDirectory(_ installation: PostgresInstallation) throws -> String {
    let given = ProcessInfo.processInfo.environment["TMPDIR"] ?? ""
    let parent = isShort(given) && isOpenToAll(given) ? given : "/tmp"
    let directory = "\(parent)/ferry-pg-\(UUID().uuidString.prefix(13))"
    guard mkdir(directory, 0o700) == 0 else {
      throw TestSupportError.posix("cannot make \(directory)")
    }
    if let user = installation.user {
      guard chown(directory, user.id, user.group) == 0 else {
        throw TestSupportError.posix("cannot give \(directory) to \(user.name)")
      }
    }
    return directory
  }
}

import FerryConformance
import FerryLaboratory
import Foundation
import Synchronization

/// One device: a replica's file and the `ferry` processes on it.
final class CommandLineDevice: Sendable {
  /// The way to sync with the server.
  enum Manner: Sendable {
    /// One process, `ferry sync --watch`.
    case watching
    /// A `ferry sync` now and then.
    case now(every: Duration)
  }

  /// The result of a `ferry sql` or `ferry batch`.
  enum WriteEnding: Sendable, Equatable {
    case committed
    /// A fault killed it; the file shows whether it has committed.
    case killed
    /// It reported that nothing was written, and the reason.
    case refused(String)
  }

  let name: String
  let file: DeviceFile
  let proxy: TCPProxy
  let supervisor: Supervisor
  private let ferry: URL
  private let chronicle: Chronicle
  /// The writing process, while there is one.
  private let writer = Mutex<ChildProcess?>(nil)

  init(
    _ number: Int, _ manner: Manner, directory: URL, node: UInt16, _ chronicle: Chronicle
  ) throws {
    name = "device-\(number)"
    file = DeviceFile(path: directory.appending(path: "\(name).db").path)
    proxy = try TCPProxy(to: node)
    ferry = try Executables.ferry()
    self.chronicle = chronicle
    var program = Supervisor.Program(
      name: name, executable: ferry, arguments: ["sync", "--json", "--replica", file.path])
    switch manner {
    case .watching: program.arguments.append("--watch")
    case .now(let pause):
      program.pause = pause
      // Done; offline; and with rows waiting for the delete of their parents.
      program.codes = [0, 3, 4]
    }
    supervisor = Supervisor(program, chronicle)
  }

  /// Makes the file with all tables, and joins the space.
  func setUp(space: String, schema: String, tables: [String]) async throws {
    try await command(["init", "--server", proxy.url, "--space", space])
    try await command(["sql", schema])
    try await command(["track"] + tables)
  }

  /// Makes the file and joins a space.
  func join(_ space: String) async throws {
    try await command(["init", "--server", proxy.url, "--space", space])
  }

  /// Creates the tables defined by the space, with their rows, and some of its own.
  func createTables(_ schema: String) async throws {
    try await command(["sync"])
    try await command(["track", "--create", "--all"])
    try await command(["sync"])
    try await command(["sql", schema])
  }

  /// Puts a schema in force, from a document in a file.
  func applySchema(_ document: URL) async throws {
    try await command(["schema", "apply", document.path, "--replace"])
  }

  private func command(_ arguments: [String]) async throws {
    let ended = try await ChildProcess.run(ferry, arguments + ["--replica", file.path])
    guard ended.status == .exited(0) else {
      throw ChaosError(
        "\(name): ferry \(arguments[0]) ended with \(ended.status): \(ended.error)")
    }
  }

  /// Runs statements as one local transaction.
  func write(_ script: String) async throws -> WriteEnding {
    try await write(["sql", "--json", "--replica", file.path, "-"], input: script)
  }

  /// Asks for a batch.
  func write(_ batch: Workload.BatchUpdate) async throws -> WriteEnding {
    let columns = batch.columns.sorted { $0.key < $1.key }
    return try await write(
      ["batch", batch.table.text, "--where", batch.predicate, "--json", "--replica", file.path]
        + columns.flatMap { ["--set", "\($0.key)=\($0.value.sqlLiteral)"] })
  }

  private func write(_ arguments: [String], input: String = "") async throws -> WriteEnding {
    let child = try ChildProcess(ferry, arguments, input: input)
    writer.withLock { $0 = child }
    defer { writer.withLock { $0 = nil } }
    switch try await child.exitStatus(within: .seconds(60)) {
    case .exited(0): return .committed
    case .exited(let code): return .refused("exit code \(code): \(child.error)\(child.output)")
    case .killed(SIGKILL): return .killed
    case .killed(let signal):
      throw ChaosError("\(name): ferry \(arguments[0]) ended by signal \(signal)")
    }
  }

  // MARK: Faults

  /// The processes at this moment.
  private var processes: [ChildProcess] {
    [supervisor.child, writer.withLock { $0 }].compactMap { $0 }
  }

  /// Kills all running processes, and keeps the syncing process down. Returns whether any process
  /// ran.
  func stop() -> Bool {
    let running = processes
    writer.withLock { $0 }?.send(SIGKILL)
    supervisor.stop()
    return !running.isEmpty
  }

  func release() { supervisor.release() }

  /// Stops all running processes with SIGSTOP. Returns the stopped ones.
  func pause() -> [ChildProcess] {
    let running = processes
    for child in running { child.send(SIGSTOP) }
    return running
  }
}

import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

/// The kind of a server's store.
enum StoreKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case embedded
  case postgres

  var testDescription: String { rawValue }
}

/// A `ferryd` process that can be killed, and started again on the same data and port.
final class Server: CapturedProcess {
  let port: UInt16
  let directory: TemporaryDirectory
  /// The address of the server's PostgreSQL database, if any.
  let database: String?
  private let store: [String]
  private let options: [String]
  private let process = Mutex<ChildProcess?>(nil)

  /// `http://127.0.0.1:PORT`.
  var url: String { "http://127.0.0.1:\(port)" }

  /// Starts a server on a new store. Returns when it is ready.
  static func start(_ kind: StoreKind = .embedded, _ options: String...) async throws -> Server {
    try await start(kind, options)
  }

  static func start(_ kind: StoreKind, _ options: [String]) async throws -> Server {
    let database = kind == .postgres ? try await database() : nil
    let server = try Server(database: database, options)
    try await server.start()
    return server
  }

  /// Makes an empty database in a cluster; all tests share one unless it is named. The start of a cluster blocks, and
  /// the pool of tasks has few threads.
  static func database(in cluster: PostgresCluster? = nil) async throws -> String {
    try await withCheckedThrowingContinuation { done in
      Thread.detachNewThread {
        done.resume(with: Result { try (cluster ?? .shared()).createDatabase() })
      }
    }
  }

  /// Creates a server without starting it; with a database, one of several that share it.
  init(database: String? = nil, _ options: [String] = []) throws {
    directory = try TemporaryDirectory()
    port = try FreePort.next()
    self.database = database
    store = database.map { ["--database", $0] } ?? ["--data", directory.file("data").path]
    self.options = options
  }

  /// Starts the process, after `kill` or `stop` too. Returns when it listens.
  @discardableResult
  func start() async throws -> ChildProcess {
    let child = try ChildProcess(
      try Executables.ferryd(), ["serve", "--listen", "127.0.0.1:\(port)"] + store + options)
    _ = try await child.line { $0.contains("listening on http://") }
    process.withLock { $0 = child }
    return child
  }

  /// Kills it with SIGKILL. Returns when it is gone.
  func kill() async throws {
    guard let child = process.withLock({ $0 }) else { return }
    child.send(SIGKILL)
    _ = try await child.exitStatus()
  }

  /// Asks it to stop with SIGTERM. Returns when it has.
  @discardableResult
  func stop() async throws -> ChildProcess.ExitStatus {
    guard let child = process.withLock({ $0 }) else { throw TestSupportError("it does not run") }
    child.send(SIGTERM)
    return try await child.exitStatus()
  }

  /// The log since the last start.
  var log: String { process.withLock { $0 }?.error ?? "" }

  var endReport: String? { process.withLock { $0 }?.endReport }

  /// Sends a signal to it, such as SIGSTOP.
  func send(_ signal: Int32) { process.withLock { $0 }?.send(signal) }

  /// Returns the most memory resident since the server's start, in bytes (proc(5)).
  func peakResident() throws -> Int {
    let id = try #require(process.withLock { $0 }).processID
    let status = try String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
    return try #require(
      line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) })
      << 10
  }

  /// Runs `ferryd` on the same store.
  func ferryd(_ arguments: String...) async throws -> ChildProcess.Finished {
    try await run(arguments)
  }

  /// Runs the same with a list of words.
  func run(_ arguments: [String]) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(
      try Executables.ferryd(), arguments + store)
  }

  /// Makes a token. Returns when a running server requires tokens: a server that never had any
  /// looks for them once a second.
  func token(_ role: String, space: String = Device.space) async throws -> String {
    let made = try await ferryd("token", "create", "--space", space, "--role", role)
    try #require(made.status == .exited(0), "\(made.error)")
    try await eventually("the server to ask for tokens") {
      let answer = try? await Wire.send(.get, "\(url)/v1/spaces/\(space)")
      return answer.map { $0.status == 401 } ?? true
    }
    return made.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Returns the newest sequence of a space: the number of operations in its history. It is 0 for a
  /// space that no device has made yet.
  func head(of space: String = Device.space, token: String? = nil) async throws -> Int64 {
    let headers: TransportHeaders = token.map { ["Authorization": "Bearer \($0)"] } ?? [:]
    let answer = try await Wire.send(.get, "\(url)/v1/spaces/\(space)", headers: headers)
    if answer.status == 404, answer.json["code"] as? String == "unknown_space" { return 0 }
    try #require(answer.status == 200, "\(answer.text)")
    return try #require(Int64(answer.json["head"] as? String ?? ""))
  }
}

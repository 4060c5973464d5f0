import FerryLaboratory
import Foundation

/// A real ferryd process, stopped when this object goes away.
final class Daemon: Sendable {
  /// Where it listens, without a slash at the end.
  let url: String
  private let child: ChildProcess

  var processID: Int32 { child.processID }

  /// Starts it on a free port over a PostgreSQL database, and waits until it listens.
  static func start(database: String, arguments: [String] = []) async throws -> Daemon {
    try await start(store: ["--database", database] + arguments)
  }

  /// Starts it on a free port over a store, named by options.
  static func start(store: [String]) async throws -> Daemon {
    let child = try ChildProcess(
      try Executables.ferryd(),
      ["serve", "--listen", "127.0.0.1:0"] + store)
    let line = try await child.line(within: .seconds(30)) { $0.contains("listening on http://") }
    guard let start = line.range(of: "http://"),
      let end = line.range(of: " (", range: start.upperBound..<line.endIndex)
    else { throw BenchError("ferryd did not print its address: \(line)") }
    return Daemon(url: String(line[start.lowerBound..<end.lowerBound]), child: child)
  }

  private init(url: String, child: ChildProcess) {
    self.url = url
    self.child = child
  }

  /// Ends it with SIGTERM and waits.
  func stop() async throws {
    child.send(SIGTERM)
    _ = try await child.exitStatus(within: .seconds(30))
  }
}

/// The reason why a benchmark could not be run.
struct BenchError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

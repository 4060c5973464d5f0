import FerryCommandLine
import FerryLaboratory
import FerrySQLite
import Foundation

/// A process that writes one small row after another into a separate table, in a file synced by
/// another process. Killed when this object goes away.
final class SmallWrites: Sendable {
  /// The table, which no replica tracks.
  static let creation = "CREATE TABLE visits(n INTEGER PRIMARY KEY, at INTEGER)"

  /// The waits of the writes, in milliseconds.
  struct Waits: Sendable {
    let writes: Int
    let median: Double
    let longest: Double
  }

  private let child: ChildProcess

  /// Starts it; returns after the first write.
  init(_ path: String) async throws {
    child = try ChildProcess(try Executables.ferryBench(), ["small-writes", path])
    _ = try await child.line(within: .seconds(60)) { $0 == "writing" }
  }

  /// Ends it after the write under way, and returns the waits of all of them.
  func end() async throws -> Waits {
    child.send(SIGTERM)
    let line = try await child.line(within: .seconds(600)) { $0.hasPrefix("waited ") }
    let numbers = line.split(separator: " ").dropFirst().compactMap { Double($0) }
    guard numbers.count == 3 else { throw BenchError("the writing process failed: \(line)") }
    return Waits(writes: Int(numbers[0]), median: numbers[1], longest: numbers[2])
  }

  /// The process.
  static let command = CommandSpec(
    "small-writes", summary: "Write small rows until SIGTERM, and print how long they waited.",
    arguments: [ArgumentSpec("file", help: "The SQLite file.")], hidden: true
  ) { arguments in
    // The wait for a lock ends with the lock: the figure is the wait, not a failure after it.
    let connection = try SQLiteConnection(
      path: try arguments.string("file"), mode: .readWrite, busyTimeout: .seconds(600))
    try connection.execute("PRAGMA synchronous=NORMAL")
    let insert = try connection.prepare("INSERT INTO visits(at) VALUES (?)")
    var waits: [Double] = []
    while !Task.isCancelled {
      let watch = Stopwatch()
      try insert.run(Int64(waits.count))
      waits.append(watch.milliseconds)
      if waits.count == 1 { try TextOutput.standardOutput.line("writing") }
      try? await Task.sleep(for: .milliseconds(5))
    }
    let longest = waits.max() ?? 0
    try TextOutput.standardOutput.line("waited \(waits.count) \(waits.percentile(50)) \(longest)")
    return .done
  }
}

import FerryCommandLine
import FerryLaboratory
import FerrySimulation
import Foundation

/// Runs one world for a person: shows the events, the failure, and the command to run it again.
struct WorldRun {
  let seed: UInt64
  let options: WorldOptions
  let replayCommand: String
  let databases: Databases
  let reportPath: String?
  let isJSON: Bool
  let shrinks: Bool
  let printsTrace: Bool

  init(
    seed: UInt64, options: WorldOptions, replayCommand: String, arguments: ParsedArguments
  ) throws {
    (self.seed, self.options) = (seed, options)
    let store = try arguments.string("store")
    databases = try Databases(store: store)
    self.replayCommand = replayCommand + (store == "sqlite" ? "" : " --store \(store)")
    reportPath = arguments.stringIfPresent("report")
    isJSON = arguments.flag("json")
    printsTrace = arguments.flag("trace")
    shrinks = !arguments.flag("no-shrink")
  }

  /// Runs the world. A signal ends the process at once: a world cannot be interrupted, and it has
  /// no effect outside of the process.
  func perform() async throws -> ExitStatus {
    if let reportPath { try checkPlace(of: reportPath) }
    let bar = ProgressBar("ferry-sim", unit: .items("s of virtual time"), total: total)
    return try await withTaskCancellationHandler {
      try run(bar)
    } onCancel: {
      bar.finish()
      if Terminal.current().isErrorTerminal { try? TextOutput.standardError.line("") }
      _exit(128 + SIGINT)
    }
  }

  private func run(_ bar: ProgressBar) throws -> ExitStatus {
    let clock = ContinuousClock()
    let start = clock.now
    let result = try world(nil, keepsEvents: reportPath != nil || printsTrace) { seconds in
      bar.update(completed: seconds)
    }
    let elapsed = start.duration(to: clock.now)
    bar.finish()
    if let reportPath {
      try write(
        ReportPage.html(ReportContent(result, replayCommand: replayCommand)), to: reportPath)
    }
    var summary = RunSummary(
      result: result, replayCommand: replayCommand, elapsed: elapsed, reportPath: reportPath)
    let output = TextOutput.standardOutput
    if printsTrace { try output.lines(result.events.lazy.map(\.line)) }
    // The verdict first: the search for a small failing part may take minutes.
    if !isJSON { try output.lines(summary.lines) }
    if !result.violations.isEmpty && shrinks {
      let shrunk = try shrink(result)
      summary.shrunk = shrunk
      if printsTrace {
        try output.lines(world(shrunk.plan, keepsEvents: true).events.lazy.map(\.line))
      }
      if !isJSON { try output.lines(summary.shrunkLines) }
    }
    if isJSON { try output.line(summary.json.text) }
    return result.violations.isEmpty ? .done : .failed
  }

  private var total: Int64 { Int64(options.seconds) }

  private func world(
    _ plan: WorldPlan?, keepsEvents: Bool = false, progress: ((Int64) -> Void)? = nil
  ) throws -> WorldResult {
    let world = try World(
      seed: seed, options: options, plan: plan, keepsEvents: keepsEvents,
      postgres: try databases.next(), mirrors: try databases.next(for: options))
    if let progress { world.onSecond = progress }
    return world.run()
  }

  private func shrink(_ result: WorldResult) throws -> Shrinker.Outcome {
    let bar = ProgressBar("shrinking", unit: .items("worlds"), total: nil)
    defer { bar.finish() }
    return try Shrinker(seed: seed, options: options) { try world($0) }
      .shrink(result, runsMax: Self.worldsToShrink(result)) { _, runs in
        bar.update(completed: Int64(runs))
      }
  }

  /// Returns the number of worlds to try for a small failing part. One that does not drain runs to
  /// the very end each time.
  private static func worldsToShrink(_ result: WorldResult) -> Int {
    result.violations.first?.oracle == "liveness" ? 60 : 400
  }

  /// Checks the page's place first: a long run is not to end with an unwritable page.
  private func checkPlace(of path: String) throws {
    let directory = URL(filePath: path).deletingLastPathComponent().path
    var isDirectory: ObjCBool = false
    let reason: String
    if !FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory) {
      reason = "there is no directory \(directory)"
    } else if !isDirectory.boolValue {
      reason = "\(directory) is not a directory"
    } else if !FileManager.default.isWritableFile(atPath: directory) {
      reason = "the directory \(directory) is not writable"
    } else if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory),
      isDirectory.boolValue
    {
      reason = "\(path) is a directory"
    } else {
      return
    }
    throw notWritten(reason)
  }

  private func notWritten(_ reason: String) -> CommandFailure {
    CommandFailure(
      "the report cannot be written", why: reason,
      next: "name a file in an existing directory with free space", code: "report_not_written")
  }

  private func write(_ page: [UInt8], to path: String) throws {
    do {
      try Data(page).write(to: URL(filePath: path))
    } catch {
      throw notWritten("\(path): \(error.localizedDescription)")
    }
  }
}

/// Fresh databases for each world, if PostgreSQL is requested.
final class Databases {
  private let isStore: Bool

  init(store: String) throws { isStore = store == "postgres" }

  /// Returns a new database's URL; `nil` for the embedded store.
  func next() throws -> String? { isStore ? try PostgresCluster.shared().createDatabase() : nil }

  /// Returns the URL of a new database for the mirrors of a world; `nil` if it has none.
  func next(for options: WorldOptions) throws -> String? {
    options.mirrors > 0 ? try PostgresCluster.shared().createDatabase() : nil
  }
}

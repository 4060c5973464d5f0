import CommandLineKit
import Foundation
import Laboratory
import Simulation

/// Runs one world for a person: shows what happens, what failed, and how to see it again.
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

  func perform() throws -> ExitStatus {
    let bar = ProgressBar("ferry-sim", unit: .items("s of virtual time"), total: total)
    let clock = ContinuousClock()
    let start = clock.now
    let result = try world(nil, keepsEvents: reportPath != nil || printsTrace) { seconds in
      bar.update(completed: seconds)
    }
    let elapsed = start.duration(to: clock.now)
    bar.finish()
    if let reportPath { try write(result, to: reportPath) }
    let shrunk = result.violations.isEmpty || !shrinks ? nil : try shrink(result)
    let summary = RunSummary(
      result: result, shrunk: shrunk, replayCommand: replayCommand, elapsed: elapsed,
      reportPath: reportPath)
    let output = TextOutput.standardOutput
    if printsTrace { try output.lines(result.events.lazy.map(\.line)) }
    if isJSON {
      try output.line(summary.json.text)
    } else {
      try output.lines(summary.lines(width: Terminal.current().width))
    }
    return result.violations.isEmpty ? .done : .failed
  }

  private var total: Int64 { Int64(options.seconds) }

  private func world(
    _ plan: WorldPlan?, keepsEvents: Bool = false, progress: ((Int64) -> Void)? = nil
  ) throws -> WorldResult {
    let world = try World(
      seed: seed, options: options, plan: plan, keepsEvents: keepsEvents,
      postgres: try databases.next())
    if let progress { world.onSecond = progress }
    return world.run()
  }

  private func shrink(_ result: WorldResult) throws -> Shrinker.Outcome {
    let bar = ProgressBar("shrinking", unit: .items("worlds"), total: nil)
    defer { bar.finish() }
    return try Shrinker(seed: seed, options: options) { try world($0) }
      .shrink(result) { _, runs in bar.update(completed: Int64(runs)) }
  }

  private func write(_ result: WorldResult, to path: String) throws {
    let page = ReportPage.html(ReportContent(result, replayCommand: replayCommand))
    do {
      try Data(page).write(to: URL(filePath: path))
    } catch {
      throw CommandFailure(
        "the report could not be written", why: "\(path): \(error.localizedDescription)",
        next: "name a file in a directory that exists and has room", code: "report_not_written")
    }
  }
}

/// A fresh database for each world, where PostgreSQL is asked for.
final class Databases {
  private let cluster: PostgresCluster?

  init(store: String) throws {
    cluster = store == "postgres" ? try PostgresCluster.shared() : nil
  }

  /// `nil` for the embedded store.
  func next() throws -> String? { try cluster?.createDatabase() }
}

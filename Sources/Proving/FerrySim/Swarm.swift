import FerryCommandLine
import FerryLaboratory
import Foundation

/// Runs a swarm's worlds in separate processes, so a crash of one is a finding and not the end.
struct Swarm {
  private let arguments: ParsedArguments
  private let first: UInt64
  private let seeds: Int
  private let jobs: Int
  private let keepsGoing: Bool

  /// The most real time for one world.
  private static let patience: Duration = .seconds(600)

  private struct Tally {
    var worlds = 0
    var operations = 0
    var faults: [String: Int] = [:]
    var failures: [(seed: UInt64, why: String)] = []
    /// Of all worlds' traces, in the order of their seeds.
    var traces: [UInt64: String] = [:]
  }

  init(_ arguments: ParsedArguments) throws {
    self.arguments = arguments
    first = try Seed.read(arguments, "first")
    seeds = try arguments.integer("seeds")
    jobs = min(try arguments.integer("jobs"), seeds)
    keepsGoing = arguments.flag("keep-going")
  }

  func perform() async throws -> ExitStatus {
    let bar = ProgressBar("worlds", unit: .items("worlds"), total: Int64(seeds))
    let clock = ContinuousClock()
    let start = clock.now
    var tally = Tally()
    try await withThrowingTaskGroup(of: Void.self) { group in
      let (lines, sink) = AsyncStream.makeStream(of: Report.self)
      for job in 0..<jobs { group.addTask { try await run(job, sink) } }
      var ended = 0
      for await report in lines {
        switch report {
        case .world(let line): add(line, to: &tally)
        case .crashed(let seed, let why): tally.failures.append((seed, why))
        case .ended: ended += 1
        }
        bar.update(completed: Int64(tally.worlds))
        if ended == jobs || !tally.failures.isEmpty && !keepsGoing { break }
      }
      let isCut = ended < jobs
      group.cancelAll()
      do {
        try await group.waitForAll()
      } catch is CancellationError where isCut {
        // The others need not go on.
      }
    }
    bar.finish()
    let status = try show(tally, start.duration(to: clock.now))
    // An interruption also reports the findings so far, but it is no verdict.
    try Task.checkCancellation()
    return status
  }

  private enum Report: Sendable {
    case world(SwarmLine)
    case crashed(UInt64, String)
    case ended
  }

  /// Runs one process after another, until the share is done: after a crash the next continues
  /// after the crashed world.
  private func run(_ job: Int, _ sink: AsyncStream<Report>.Continuation) async throws {
    defer { sink.yield(.ended) }
    var done = 0
    let share = (seeds - job + jobs - 1) / jobs
    while done < share {
      try Task.checkCancellation()
      let child = try worker(from: first &+ UInt64(job + done * jobs), share - done)
      var line = 0
      while let text = try? await child.line(
        after: line, within: Self.patience, where: { _ in true })
      {
        line += 1
        guard let world = SwarmLine(text) else { continue }
        done += 1
        sink.yield(.world(world))
      }
      try Task.checkCancellation()
      guard done < share else { return }
      let seed = first &+ UInt64(job + done * jobs)
      sink.yield(.crashed(seed, Self.ending(of: child)))
      done += 1
    }
  }

  /// Returns the reason why a process with worlds left to run ended.
  private static func ending(of child: ChildProcess) -> String {
    guard let status = child.endedWith else { return "the process did not end within \(patience)" }
    let lines = child.error.split(whereSeparator: \.isNewline)
    let line = lines.first { $0.contains("Fatal error") } ?? lines.last ?? "no message"
    return switch status {
    case .exited(let code): "the process ended with \(code): \(line)"
    case .killed(let signal): "the process was killed by signal \(signal): \(line)"
    }
  }

  private func worker(from seed: UInt64, _ count: Int) throws -> ChildProcess {
    var words = ["swarm-worker", "--first", "\(seed)", "--step", "\(jobs)", "--seeds", "\(count)"]
    for option in SwarmCommand.worldOptions {
      words += ["--\(option.name)", try arguments.string(option.name)]
    }
    return try ChildProcess(URL(filePath: "/proc/self/exe").resolvingSymlinksInPath(), words)
  }

  // MARK: Reporting

  private func add(_ line: SwarmLine, to tally: inout Tally) {
    tally.worlds += 1
    tally.operations += line.operations
    tally.traces[line.seed] = line.traceHash
    for (name, count) in line.faults { tally.faults[name, default: 0] += count }
    if let why = line.violation { tally.failures.append((line.seed, why)) }
  }

  private func show(_ tally: Tally, _ elapsed: Duration) throws -> ExitStatus {
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      try output.line(json(tally, elapsed).text)
    } else {
      try output.lines(try lines(tally, elapsed))
    }
    return tally.failures.isEmpty ? .done : .failed
  }

  private func lines(_ tally: Tally, _ elapsed: Duration) throws -> [String] {
    let seconds = elapsed / .seconds(1)
    let pace = Int(Double(tally.worlds) * 60 / max(seconds, 1e-9))
    var lines = [
      "\(tally.worlds) \(tally.worlds == 1 ? "world" : "worlds") from seed \(first), "
        + "\(tally.operations) operations, \(Int(seconds)) s: \(pace) worlds a minute in "
        + "\(jobs) \(jobs == 1 ? "process" : "processes")"
    ]
    if !tally.faults.isEmpty {
      let faults = tally.faults.sorted { $0.key < $1.key }
      lines += ["", "Faults and upgrades"] + SimCommand.plot(faults.map { ($0.key, $0.value) })
    }
    lines.append("")
    if tally.failures.isEmpty {
      return lines + [
        Task.isCancelled
          ? "Interrupted: no oracle found a violation so far." : "No oracle found a violation."
      ]
    }
    for failure in tally.failures.sorted(by: { $0.seed < $1.seed }) {
      lines += ["FAILED seed \(failure.seed): \(failure.why)"]
      lines += ["  Run it again: \(try replay(failure.seed))"]
    }
    return lines
  }

  private func replay(_ seed: UInt64) throws -> String {
    var command = "ferry-sim replay \(seed)"
    for option in SwarmCommand.worldOptions {
      let value = try arguments.string(option.name)
      if value != option.defaultValue { command += " --\(option.name) \(value)" }
    }
    return command
  }

  private func json(_ tally: Tally, _ elapsed: Duration) throws -> JSONText {
    .object([
      ("first", .string("\(first)")), ("worlds", .int(tally.worlds)),
      ("operations", .int(tally.operations)), ("seconds", .double(elapsed / .seconds(1))),
      (
        "faults",
        .object(tally.faults.sorted { $0.key < $1.key }.map { ($0.key, .int($0.value)) })
      ),
      (
        "failures",
        .array(
          try tally.failures.sorted { $0.seed < $1.seed }.map { failure in
            .object([
              ("seed", .string("\(failure.seed)")), ("why", .string(failure.why)),
              ("replay", .string(try replay(failure.seed))),
            ])
          })
      ),
      (
        "traces",
        .object(tally.traces.sorted { $0.key < $1.key }.map { ("\($0.key)", .string($0.value)) })
      ),
    ])
  }
}

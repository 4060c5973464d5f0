import FerryCommandLine
import FerryLaboratory
import Foundation

/// Deals the inputs of a run to processes, so a crash is a finding and not the end.
struct FuzzRun {
  /// Inputs of one process.
  private static let share = 250_000
  /// Real time without a sign of life after which a process hangs.
  private static let patience: Duration = .seconds(300)
  private static let findingsMax = 20

  private let arguments: ParsedArguments
  private let targets: [FuzzTarget]
  private let corpus: FuzzCorpus
  private let cases: Int
  private let jobs: Int
  private let seed: UInt64

  private struct Tally {
    var cases = 0
    var read = 0
    var kinds: [String: [UInt8]] = [:]
  }

  private struct Finding {
    var target: String
    var bytes: [UInt8]
    var why: String
  }

  private struct Share: Sendable {
    var tallies: [String: Tally] = [:]
    var finding: Finding?
  }

  init(_ arguments: ParsedArguments) throws {
    self.arguments = arguments
    targets = try FuzzCommand.targets(arguments)
    corpus = try FuzzCommand.corpus(arguments)
    cases = try arguments.integer("cases")
    jobs = try arguments.integer("jobs")
    seed = try Seed.read(arguments)
  }

  func perform() async throws -> ExitStatus {
    let scratch = try TemporaryDirectory()
    let bar = ProgressBar("inputs", unit: .items("inputs"), total: Int64(cases))
    let start = ContinuousClock.now
    let shares = (cases + Self.share - 1) / Self.share
    var (tallies, findings): ([String: Tally], [Finding]) = ([:], [])
    var next = min(jobs, shares)
    try await withThrowingTaskGroup(of: Share.self) { group in
      for number in 0..<next {
        let box = scratch.file("input-\(number)").path
        group.addTask { try await run(number, box) }
      }
      while let share = try await group.next() {
        merge(share, &tallies, &findings)
        bar.update(completed: Int64(tallies.values.reduce(0) { $0 + $1.cases }))
        guard next < shares, findings.count < Self.findingsMax else { continue }
        let (number, box) = (next, scratch.file("input-\(next)").path)
        next += 1
        group.addTask { try await run(number, box) }
      }
    }
    bar.finish()
    try add(tallies, findings)
    return try show(tallies, findings, start.duration(to: .now))
  }

  private func merge(_ share: Share, _ tallies: inout [String: Tally], _ findings: inout [Finding])
  {
    for (name, part) in share.tallies {
      tallies[name, default: Tally()].cases += part.cases
      tallies[name]?.read += part.read
      tallies[name]?.kinds.merge(part.kinds) { $0.count <= $1.count ? $0 : $1 }
    }
    if let finding = share.finding { findings.append(finding) }
  }

  // MARK: Processes

  /// Runs one process to the end.
  private func run(_ number: Int, _ box: String) async throws -> Share {
    let count = min(Self.share, cases - number * Self.share)
    var words = ["fuzz-worker", "--seed", "\(seed &+ UInt64(number))", "--cases", "\(count)"]
    words += ["--box", box, "--corpus", corpus.folder.path]
    words += ["--fixtures", try arguments.string("fixtures")]
    for target in targets { words += ["--only", target.name] }
    let child = try ChildProcess(
      URL(filePath: "/proc/self/exe").resolvingSymlinksInPath(), words,
      environment: ["SWIFT_BACKTRACE": "enable=no"])
    var share = Share()
    var (lines, why): (Int, String?) = (0, nil)
    while let line = try? await child.line(
      after: lines, within: Self.patience, where: { _ in true })
    {
      lines += 1
      read(line, &share)
      if line.hasPrefix("finding ") { why = String(line.dropFirst(8)) }
    }
    try Task.checkCancellation()
    let ending = child.endedWith
    guard why != nil || ending != .exited(0) else { return share }
    child.send(SIGKILL)
    let input = FuzzBox.read(box)
    share.finding = Finding(
      target: input.map { targets[$0.target].name } ?? "unknown", bytes: input?.bytes ?? [],
      why: why ?? Self.reason(of: ending, child.error))
    return share
  }

  private static func reason(of ending: ChildProcess.ExitStatus?, _ error: String) -> String {
    let lines = error.split(whereSeparator: \.isNewline)
    let line = lines.first { $0.contains("Fatal error") } ?? lines.last ?? "no message"
    return switch ending {
    case nil: "the process gave no sign of life for \(patience)"
    case .exited(let code): "the process ended with \(code): \(line)"
    case .killed(let signal): "the process was killed by signal \(signal): \(line)"
    }
  }

  private func read(_ line: String, _ share: inout Share) {
    if line.hasPrefix("target ") {
      let words = line.split(separator: " ")
      guard words.count == 4, let cases = Int(words[2]), let read = Int(words[3]) else { return }
      share.tallies[String(words[1]), default: Tally()].cases = cases
      share.tallies[String(words[1])]?.read = read
    } else if line.hasPrefix("kind ") {
      let parts = line.dropFirst(5).split(separator: "\t", omittingEmptySubsequences: false)
      guard parts.count == 3, let bytes = FuzzCorpus.bytes(parts[2]) else { return }
      share.tallies[String(parts[0]), default: Tally()].kinds[String(parts[1])] = bytes
    }
  }

  // MARK: Results

  private func add(_ tallies: [String: Tally], _ findings: [Finding]) throws {
    for finding in findings where !finding.bytes.isEmpty {
      let kind = "finding: " + FuzzTarget.kind(finding.why)
      try corpus.add([(kind, finding.bytes)], to: finding.target)
    }
    guard arguments.flag("keep") else { return }
    for (name, tally) in tallies {
      // Outcomes of requests depend on the requests before.
      let known = Set(try corpus.inputs(of: name).map(\.kind))
      let new = tally.kinds.filter { !known.contains($0.key) && $0.value.count <= 1_024 }
      if !new.isEmpty { try corpus.add(new.map { ($0.key, $0.value) }, to: name) }
    }
  }

  private func show(
    _ tallies: [String: Tally], _ findings: [Finding], _ elapsed: Duration
  ) throws -> ExitStatus {
    let output = TextOutput.standardOutput
    let total = tallies.values.reduce(0) { $0 + $1.cases }
    let pace = Int(Double(total) / max(elapsed / .seconds(1), 1e-9))
    if arguments.flag("json") {
      try output.line(json(tallies, findings, total, pace).text)
    } else {
      var table = TextTable([
        TextTable.Column("READER"), TextTable.Column("INPUTS", .right),
        TextTable.Column("READ", .right), TextTable.Column("KINDS", .right),
      ])
      for target in targets {
        let tally = tallies[target.name] ?? Tally()
        table.append([
          target.name, "\(tally.cases)",
          "\(tally.cases == 0 ? 0 : 100 * tally.read / tally.cases) %", "\(tally.kinds.count)",
        ])
      }
      try output.lines(table.lines(width: Terminal.current().tableWidth))
      try output.line(
        "\(total) inputs from seed \(seed), \(Int(elapsed / .seconds(1))) s: \(pace) a second in "
          + "\(jobs) \(jobs == 1 ? "process" : "processes")")
      for finding in findings {
        try output.lines([
          "FAILED \(finding.target): \(finding.why)",
          "  input: \(FuzzCorpus.text(Array(finding.bytes.prefix(2_000))))",
        ])
      }
      try output.line(
        findings.isEmpty
          ? "Every property held." : "The inputs are kept in \(corpus.folder.path).")
    }
    return findings.isEmpty ? .done : .failed
  }

  private func json(
    _ tallies: [String: Tally], _ findings: [Finding], _ total: Int, _ pace: Int
  ) -> JSONText {
    .object([
      ("inputs", .int(total)), ("seed", .string("\(seed)")), ("pace", .int(pace)),
      (
        "readers",
        .array(
          targets.map { target in
            let tally = tallies[target.name] ?? Tally()
            return .object([
              ("name", .string(target.name)), ("inputs", .int(tally.cases)),
              ("read", .int(tally.read)), ("kinds", .int(tally.kinds.count)),
            ])
          })
      ),
      (
        "findings",
        .array(
          findings.map { finding in
            .object([
              ("reader", .string(finding.target)), ("why", .string(finding.why)),
              ("input", .string(FuzzCorpus.text(finding.bytes))),
            ])
          })
      ),
    ])
  }
}

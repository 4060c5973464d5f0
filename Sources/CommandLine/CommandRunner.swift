import Foundation

/// Runs a command. It reads the command line and turns signals into cancellation. It turns every
/// error into an exit status and three short lines or one JSON object.
package struct CommandRunner: Sendable {
  /// The command with `help` and `completion` added.
  package let root: CommandSpec
  private let output: TextOutput
  private let errorOutput: TextOutput
  private let terminal: Terminal
  private let exitNow: @Sendable (Int32) -> Void
  private let explain: Explanation

  /// Adds details of the command line to a failure.
  package typealias Explanation = @Sendable (CommandFailure, ParsedArguments) -> CommandFailure

  /// - Parameters:
  ///   - output: Receives help, version, completion, and failures with `--json`.
  ///   - errorOutput: Receives failures otherwise.
  ///   - exitNow: Ends the process at the second signal.
  ///   - explain: Changes a failure of a command before it is shown.
  package init(
    _ spec: CommandSpec, output: TextOutput = .standardOutput,
    errorOutput: TextOutput = .standardError, terminal: Terminal = .current(),
    exitNow: @escaping @Sendable (Int32) -> Void = { _exit($0) },
    explain: @escaping Explanation = { failure, _ in failure }
  ) {
    self.explain = explain
    self.root = spec.withBuiltInCommands(output: output)
    self.output = output
    self.errorOutput = errorOutput
    self.terminal = terminal
    self.exitNow = exitNow
  }

  /// Runs this process's command line and ends the process.
  ///
  /// SIGINT and SIGTERM cancel the command's task. If the task then returns, its status counts (a
  /// server after a shutdown ends with 0). If it throws, the exit status is 130 or 143. The second
  /// signal ends the process at once. SIGPIPE is ignored: a write to a closed reader throws, and
  /// the process ends quietly with 141.
  package static func main(
    _ spec: CommandSpec, arguments: [String] = Array(CommandLine.arguments.dropFirst()),
    explain: @escaping Explanation = { failure, _ in failure }
  ) async -> Never {
    signal(SIGPIPE, SIG_IGN)
    let status = await CommandRunner(spec, explain: explain).run(
      arguments, environment: ProcessInfo.processInfo.environment, signals: [SIGINT, SIGTERM])
    exit(status)
  }

  /// Runs a command line and returns the exit status.
  /// - Parameter signals: Those that cancel the command while it runs.
  package func run(
    _ arguments: [String], environment: [String: String] = [:], signals: [Int32] = []
  ) async -> Int32 {
    let isJSON = asksForJSON(arguments, environment)
    do {
      switch try root.parse(arguments, environment: environment) {
      case .help(let path):
        let help = root.help(
          Array(path.dropFirst()), width: terminal.width, bold: terminal.hasColour)
        // It may be bold.
        try output.write(help.drawn(with: .current) + "\n")
        return 0
      case .version:
        try output.line("\(root.name) \(root.version ?? "")")
        return 0
      case .run(let parsed):
        return await run(parsed, isJSON: isJSON, signals: signals)
      }
    } catch {
      return report(error, isJSON: isJSON)
    }
  }

  private func run(_ parsed: ParsedArguments, isJSON: Bool, signals: [Int32]) async -> Int32 {
    let trail = root.trail(along: parsed.path.dropFirst())
    guard let action = trail.last?.run else { preconditionFailure("parsed without an action") }
    let interruption = Interruption(exitNow: exitNow)
    var sources: [any DispatchSourceSignal] = []
    for number in signals { sources.append(await interruption.listen(for: number)) }
    let task = Task { try await action(parsed) }
    interruption.cancels(task)
    let result = await task.result
    for source in sources { source.cancel() }
    switch result {
    case .success(let status):
      return status.rawValue
    case .failure(let error):
      guard let number = interruption.signal else {
        return report(error, of: parsed, isJSON: isJSON)
      }
      if !(error is CancellationError) { _ = report(error, of: parsed, isJSON: isJSON) }
      return 128 + number
    }
  }

  private func report(
    _ error: any Error, of parsed: ParsedArguments? = nil, isJSON: Bool
  ) -> Int32 {
    if let error = error as? OutputError, error == .closed { return 128 + SIGPIPE }
    let path = parsed?.path ?? [root.name]
    var failure = CommandFailure(error, command: "`\(path.joined(separator: " "))`")
    if let parsed { failure = explain(failure, parsed) }
    if isJSON {
      try? output.line(failure.json.text)
    } else {
      try? errorOutput.line(failure.text(program: root.name))
    }
    return failure.status.rawValue
  }

  /// Returns whether `--json` is wanted, found without parsing: errors of a wrong command line are
  /// JSON too.
  private func asksForJSON(_ arguments: [String], _ environment: [String: String]) -> Bool {
    guard let flag = root.jsonFlag else { return false }
    let options = arguments.prefix { $0 != "--" }
    if let last = options.last(where: { $0 == "--json" || $0 == "--no-json" }) {
      return last == "--json"
    }
    return (try? flag.isOn(in: environment)) ?? false
  }
}

extension CommandSpec {
  /// The flag `--json` of this command or of one below it.
  fileprivate var jsonFlag: FlagSpec? {
    if let flag = flags.first(where: { $0.name == "json" }) { return flag }
    for command in subcommands {
      if let flag = command.jsonFlag { return flag }
    }
    return nil
  }
}

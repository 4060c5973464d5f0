import FerryCommandLine
import FerryTestSupport
import Foundation
import Testing

@Suite("Running a command", .hangLimit)
struct RunnerTests {
  private func run(
    _ arguments: [String], environment: [String: String] = [:],
    action: @escaping CommandSpec.Action = { _ in .done }
  ) async -> (status: Int32, output: String, errors: String) {
    let (output, errors) = (Collected(), Collected())
    let runner = CommandRunner(
      Sample.ferry(run: action), output: output.output, errorOutput: errors.output,
      terminal: Terminal())
    let status = await runner.run(arguments, environment: environment)
    return (status, output.text, errors.text)
  }

  private static let offline = CommandFailure(
    "cannot reach http://h", why: "connection\nrefused\u{1B}[2J", next: "try later",
    status: .unreachable, code: "unreachable")

  @Test("the command's status is the exit status", arguments: FerryCommandLine.ExitStatus.allCases)
  func status(status: FerryCommandLine.ExitStatus) async {
    #expect(await run(["log"]) { _ in status }.status == status.rawValue)
  }

  @Test("a failure is three short lines on standard error, without control characters")
  func failureText() async {
    let result = await run(["log"]) { _ in throw Self.offline }
    #expect(result.status == 3)
    #expect(result.output == "")
    #expect(
      result.errors == """
        ferry: cannot reach http://h
          why: connection refused\\u{1B}[2J
          next: try later

        """)
  }

  @Test("with --json a failure is one object on standard output")
  func failureJSON() async {
    let result = await run(["log", "--json"]) { _ in throw Self.offline }
    #expect(result.errors == "")
    #expect(
      result.output
        == #"{"error":{"code":"unreachable","message":"cannot reach http://h","#
        + #""why":"connection\nrefused\u001b[2J","next":"try later"}}"# + "\n")
    let usage = await run(["lgo"], environment: ["FERRY_JSON": "1"])
    #expect(usage.status == 2)
    #expect(usage.output.hasPrefix(#"{"error":{"code":"unknown_command","#))
    let plain = await run(["lgo", "--no-json"], environment: ["FERRY_JSON": "1"])
    #expect(plain.errors.hasPrefix("ferry: unknown command lgo\n"))
    #expect(await run(["track", "--", "--json", "x"]) { _ in throw Self.offline }.output == "")
  }

  @Test("an error without an explanation is described")
  func otherErrors() async {
    struct Odd: Error {}
    let result = await run(["token", "create"]) { _ in throw Odd() }
    #expect(result.status == 1)
    #expect(result.errors.hasPrefix("ferry: `ferry token create` failed\n  why: Odd()\n"))
    let cancelled = await run(["log"]) { _ in throw CancellationError() }
    #expect(cancelled.status == 1)
    #expect(cancelled.errors.hasPrefix("ferry: `ferry log` was cancelled\n"))
  }

  @Test("help, version and completion come from the kit")
  func builtIns() async {
    #expect(await run(["--version"]).output == "ferry 1.2.3\n")
    #expect(await run([]).output.contains("  completion  Print a script"))
    #expect(await run(["help", "log"]).output == Sample.ferry().help(["log"]) + "\n")
    #expect(await run(["help", "help"]).status == 0)
    #expect(await run(["completion", "zsh"]).output.hasPrefix("#compdef ferry"))
    #expect(await run(["completion", "tcsh"]).status == 2)
  }

  @Test("a closed reader ends the command quietly")
  func closedOutput() async {
    let result = await run(["log"]) { _ in throw OutputError.closed }
    #expect(result.status == 141)
    #expect(result.errors == "")
  }

  @Test("lines are written in large pieces and arrive whole")
  func lines() throws {
    let collected = Collected()
    try collected.output.lines((0..<20_000).lazy.map { "line \($0)" })
    #expect(collected.all.count < 10)
    #expect(collected.text.split(separator: "\n").count == 20_000)
  }
}

@Suite("Signals", .hangLimit)
struct SignalTests {
  /// Raises the signal, and is suspended until it is cancelled.
  private static func waiting(
    after signals: [Int32],
    then finish: @escaping @Sendable () throws -> FerryCommandLine.ExitStatus
  ) -> CommandSpec {
    CommandSpec("wait", summary: "Wait.") { _ in
      for number in signals { kill(getpid(), number) }
      for await _ in AsyncStream<Never>.makeStream().stream {}
      return try finish()
    }
  }

  @Test("SIGINT cancels the command, which ends with 130")
  func interrupt() async {
    await #expect(processExitsWith: .exitCode(130)) {
      await CommandRunner.main(
        SignalTests.waiting(after: [SIGINT]) { throw CancellationError() }, arguments: [])
    }
  }

  @Test("SIGTERM cancels the command, which ends with 143 if it throws")
  func terminate() async {
    await #expect(processExitsWith: .exitCode(143)) {
      await CommandRunner.main(
        SignalTests.waiting(after: [SIGTERM]) { throw CancellationError() }, arguments: [])
    }
  }

  @Test("a command that ends normally after SIGTERM keeps its own status")
  func graceful() async {
    await #expect(processExitsWith: .exitCode(0)) {
      await CommandRunner.main(
        SignalTests.waiting(after: [SIGTERM]) { .done }, arguments: [])
    }
  }

  @Test("a second signal immediately ends a command that ignores the first")
  func second() async {
    await #expect(processExitsWith: .exitCode(130)) {
      let spec = CommandSpec("deaf", summary: "Never end.") { _ in
        kill(getpid(), SIGTERM)
        for await _ in AsyncStream<Never>.makeStream().stream {}
        kill(getpid(), SIGINT)
        await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
        return .done
      }
      await CommandRunner.main(spec, arguments: [])
    }
  }

  @Test("writing to a closed pipe ends quietly with 141")
  func brokenPipe() async throws {
    let result = try await #require(
      processExitsWith: .exitCode(141), observing: [\.standardErrorContent]
    ) {
      var ends: [Int32] = [0, 0]
      _ = pipe(&ends)
      close(ends[0])
      let output = TextOutput(descriptor: ends[1])
      let spec = CommandSpec("log", summary: "Write without end.") { _ in
        while true { try output.line("entry") }
      }
      await CommandRunner.main(spec, arguments: [])
    }
    #expect(!String(decoding: result.standardErrorContent, as: UTF8.self).contains("log:"))
  }
}

@Suite("The terminal", .hangLimit)
struct TerminalTests {
  @Test("tables fit the terminal, and are unlimited elsewhere")
  func tableWidth() {
    #expect(Terminal(isOutputTerminal: true, width: 72).tableWidth == 72)
    #expect(Terminal(width: 72).tableWidth == nil)
  }
}

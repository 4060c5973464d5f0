import FerryTestSupport
import Testing

@testable import FerryCommandLine

@Suite("Progress on a small terminal", .hangLimit)
struct ProgressRoomTests {
  private func drawn(_ count: Int, height: Int) -> [String] {
    let collected = Collected()
    let lines = ProgressLines(
      terminal: Terminal(isErrorTerminal: true, width: 60, height: height),
      output: collected.output)
    lines.show(
      (0..<count).map {
        ProgressState(label: "part \($0)", unit: .bytes, completed: 1, total: 100)
      })
    return collected.text.split(separator: "\n").filter { $0.contains("p") || $0.contains("…") }
      .map(String.init)
  }

  @Test("the drawn lines fit the terminal, and the remaining ones are counted")
  func room() {
    let lines = drawn(2_000, height: 10)
    #expect(lines.count == 9)
    #expect(lines.first?.contains("part 0") == true)
    #expect(lines.last?.contains("… and 1,992 more") == true)
    #expect(drawn(9, height: 10).count == 9)
    #expect(drawn(9, height: 10).last?.contains("part 8") == true)
    #expect(drawn(5, height: 2).count == 1)
    #expect(drawn(5, height: 2).first?.contains("part 0") == true)
  }

  @Test("a terminal without cursor control is shown no progress")
  func dumb() {
    #expect(!Terminal.allowsDrawing(["TERM": "dumb"]))
    #expect(Terminal.allowsDrawing(["TERM": "xterm"]) && Terminal.allowsDrawing([:]))
  }

  @Test("--json of a nested command applies to its failures")
  func nestedJSON() async {
    let action: CommandSpec.Action = { _ in
      throw CommandFailure("no", why: "why", next: "next", code: "no")
    }
    let below = CommandSpec(
      "show", summary: "Show.", flags: [FlagSpec("json", help: "In JSON.")], run: action)
    let spec = CommandSpec(
      "top", summary: "Top.",
      subcommands: [CommandSpec("middle", summary: "Middle.", subcommands: [below])])
    let (output, errors) = (Collected(), Collected())
    let runner = CommandRunner(
      spec, output: output.output, errorOutput: errors.output, terminal: Terminal())
    #expect(await runner.run(["middle", "show", "--json"]) == 1)
    #expect(output.text.hasPrefix(#"{"error":{"code":"no""#) && errors.text.isEmpty)
    #expect(await runner.run(["middle", "show"]) == 1)
    #expect(errors.text.hasPrefix("top: no\n"))
  }
}

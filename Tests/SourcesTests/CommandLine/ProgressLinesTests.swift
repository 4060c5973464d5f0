import FerryCommandLine
import FerryTestSupport
import Synchronization
import Testing

@Suite("Several lines of progress", .hangLimit)
struct ProgressLinesTests {
  /// The written output, and a clock moved by a test.
  private final class Screen: Sendable {
    let text = Mutex("")
    let time = Mutex(ContinuousClock.now)

    func lines(isTerminal: Bool = true) -> ProgressLines {
      ProgressLines(
        terminal: Terminal(isErrorTerminal: isTerminal, width: 60),
        output: TextOutput { text in self.text.withLock { $0 += text } },
        now: { self.time.withLock { $0 } })
    }

    func wait() { time.withLock { $0 += .seconds(1) } }

    func take() -> String {
      text.withLock { text in
        defer { text = "" }
        return text
      }
    }
  }

  private func state(_ label: String, _ done: Int64) -> ProgressState {
    ProgressState(label: label, unit: .bytes, completed: done, total: 100)
  }

  @Test("lines are drawn over earlier ones, and the area below them is cleared")
  func redraw() {
    let screen = Screen()
    let lines = screen.lines()
    lines.show([state("a", 10), state("b", 20)])
    let first = screen.take()
    #expect(first.contains("10%") && first.contains("20%") && !first.contains("A\r"))
    screen.wait()
    lines.show([state("b", 50)])
    let second = screen.take()
    #expect(second.hasPrefix("\u{1B}[2A\r") && second.hasSuffix("\u{1B}[J"))
    #expect(second.contains("50%"))
    lines.finish()
    #expect(screen.take() == "\u{1B}[1A\r\u{1B}[J")
    lines.show([state("a", 90)])
    #expect(screen.take().isEmpty)
  }

  @Test("each drawing has the terminal's current width, and long names leave room")
  func width() {
    let width = Mutex(60)
    let screen = Screen()
    let lines = ProgressLines(
      terminal: Terminal(isErrorTerminal: true, width: width.withLock { $0 }),
      output: TextOutput { text in screen.text.withLock { $0 += text } },
      now: { screen.time.withLock { $0 } })
    lines.show([state("a", 10)])
    #expect(screen.take().contains("░"))
    screen.wait()
    width.withLock { $0 = 21 }
    lines.show([state("a-name-that-is-far-too-long", 50)])
    #expect(screen.take().contains("a-name-that-i…   50%"))
  }

  @Test("drawings in quick succession are skipped, and a note is shown above the next one")
  func throttle() {
    let screen = Screen()
    let lines = screen.lines()
    lines.show([state("a", 10)])
    _ = screen.take()
    lines.show([state("a", 20)])
    #expect(screen.take().isEmpty)
    lines.print("a is done\u{7}")
    let note = screen.take()
    #expect(note.hasPrefix("\u{1B}[1A\r\u{1B}[J") && note.contains("a is done"))
    #expect(!note.contains("\u{7}"))
    lines.show([state("b", 30)])
    #expect(screen.take().contains("30%"))
  }

  @Test("nothing is written without a terminal")
  func silence() {
    let screen = Screen()
    let lines = screen.lines(isTerminal: false)
    lines.show([state("a", 10)])
    lines.print("a")
    lines.finish()
    #expect(screen.take().isEmpty)
  }
}

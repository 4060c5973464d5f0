import Synchronization

/// Several lines on standard error with the progress of a command's parts.
///
/// Each drawing replaces the one before. The lines are silent if standard error is not a terminal.
/// They are safe to use from several threads. They never fail: output errors are ignored.
package final class ProgressLines: Sendable {
  private struct Shown {
    var lineCount = 0
    var lastDraw: ContinuousClock.Instant?
    var isFinished = false
  }

  private let output: TextOutput
  private let isEnabled: Bool
  /// The terminal as it is now: the user may resize it.
  private let terminal: @Sendable () -> Terminal
  private let interval: Duration
  private let now: @Sendable () -> ContinuousClock.Instant
  private let shown = Mutex(Shown())

  /// Draws nothing before the first ``show(_:)``.
  ///
  /// - Parameters:
  ///   - terminal: Read again for each drawing.
  ///   - interval: The shortest time between two drawings.
  ///   - now: The clock.
  package init(
    terminal: @autoclosure @escaping @Sendable () -> Terminal = .current(),
    output: TextOutput = .standardError,
    interval: Duration = .milliseconds(100),
    now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
  ) {
    self.output = output
    self.isEnabled = terminal().isErrorTerminal
    self.terminal = terminal
    self.interval = interval
    self.now = now
  }

  /// Replaces the displayed parts by these, one line each, as many as the terminal has room for.
  /// Lines that scrolled away cannot be drawn over. A call too soon after the last drawing has no
  /// effect.
  package func show(_ states: [ProgressState]) {
    guard isEnabled else { return }
    shown.withLock { shown in
      let instant = now()
      if shown.isFinished { return }
      if let last = shown.lastDraw, last.duration(to: instant) < interval { return }
      shown.lastDraw = instant
      let terminal = terminal()
      draw(Self.lines(states, width: terminal.width - 1, room: terminal.height - 1), &shown)
    }
  }

  /// Returns at most `room` lines; the last one counts the omitted parts.
  private static func lines(_ states: [ProgressState], width: Int, room: Int) -> [String] {
    let room = max(1, room)
    let isTooMuch = states.count > room
    // One line alone is the first part's: the whole.
    let count = isTooMuch ? max(1, room - 1) : states.count
    var lines = states.prefix(count).map { ProgressBar.render($0, width: width) }
    if isTooMuch, room > 1 {
      let rest = "\(Glyphs.current.ellipsis) and \((states.count - count).grouped) more"
      lines.append(rest.truncated(toWidth: width))
    }
    return lines
  }

  /// Writes a line above the parts, which come back with the next ``show(_:)``.
  package func print(_ line: String) {
    guard isEnabled else { return }
    shown.withLock { shown in
      draw([], &shown)
      shown.lastDraw = nil
      try? output.line(line.escapedForTerminal)
    }
  }

  /// Removes the lines; later calls have no effect.
  package func finish() {
    guard isEnabled else { return }
    shown.withLock { shown in
      if !shown.isFinished { draw([], &shown) }
      shown.isFinished = true
    }
  }

  /// Draws lines over the existing ones. It moves back to the first of them, clears and writes each
  /// line, and clears everything below.
  private func draw(_ lines: [String], _ shown: inout Shown) {
    let back = shown.lineCount > 0 ? "\u{1B}[\(shown.lineCount)A\r" : ""
    let text = lines.map { "\($0)\u{1B}[K\n" }.joined()
    if !back.isEmpty || !text.isEmpty { try? output.write("\(back)\(text)\u{1B}[J") }
    shown.lineCount = lines.count
  }
}

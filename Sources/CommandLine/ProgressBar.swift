import Foundation
import Synchronization

/// One line on standard error with the progress of a command.
///
/// It is silent if standard error is not a terminal. It is safe to use from several threads. It
/// never fails: output errors are ignored.
package final class ProgressBar: Sendable {
  /// The fate of the line at the end.
  package enum Ending: Sendable {
    /// The line vanishes.
    case clear
    /// The line stays, in the last state.
    case leave
  }

  private struct Shown {
    var state: ProgressState
    var lastDraw: ContinuousClock.Instant?
    /// When the current part of the work began.
    var start: ContinuousClock.Instant
    /// The time of the last update of `state.rate`, and the finished amount at this time.
    var measured: (at: ContinuousClock.Instant, completed: Int64)
    /// The time of the last progress.
    var lastChange: ContinuousClock.Instant
    var isVisible = false
    var isFinished = false
  }

  private let output: TextOutput
  private let isEnabled: Bool
  private let width: Int
  private let interval: Duration
  private let now: @Sendable () -> ContinuousClock.Instant
  private let shown: Mutex<Shown>

  /// Starts the clock; draws nothing before the first update.
  ///
  /// - Parameters:
  ///   - total: The total amount; `nil` shows a moving sign instead of a bar.
  ///   - interval: The shortest time between two drawings.
  ///   - now: The clock.
  package init(
    _ label: String, unit: ProgressState.Unit, total: Int64? = nil,
    terminal: Terminal = .current(), output: TextOutput = .standardError,
    interval: Duration = .milliseconds(100),
    now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
  ) {
    self.output = output
    self.isEnabled = terminal.isErrorTerminal
    // The last column stays free: some terminals wrap as soon as it is written.
    self.width = terminal.width - 1
    self.interval = interval
    self.now = now
    let start = now()
    let state = ProgressState(label: label, unit: unit, total: total)
    shown = Mutex(Shown(state: state, start: start, measured: (start, 0), lastChange: start))
  }

  /// Adds to the finished amount.
  package func advance(by amount: Int64 = 1) {
    change { shown, _ in shown.state.completed += amount }
  }

  /// Sets the finished amount and, if given, the total.
  ///
  /// - Parameter label: the current part of the work; another one than before starts at 0.
  package func update(_ label: String? = nil, completed: Int64, total: Int64? = nil) {
    change { shown, instant in
      if let label, label != shown.state.label {
        shown.state.label = label
        shown.state.rate = nil
        shown.start = instant
        shown.measured = (instant, completed)
        shown.lastDraw = nil
      }
      shown.state.completed = completed
      if let total { shown.state.total = total }
    }
  }

  /// Shows the awaited thing and the time of waiting, if there was no progress for a while. The
  /// next update removes this note. Callers call this every second or so.
  package func wait(for what: String, after silence: Duration = .seconds(3)) {
    guard isEnabled else { return }
    shown.withLock { shown in
      let instant = now()
      let span = shown.lastChange.duration(to: instant)
      guard !shown.isFinished, span >= silence else { return }
      var state = shown.state
      (state.elapsed, state.rate) = (shown.start.duration(to: instant), nil)
      state.label += ": waiting for \(what), \(span.clockText)"
      draw(state, &shown)
    }
  }

  /// Removes the line, so something else can be written; the next update brings it back.
  package func hide() {
    shown.withLock { shown in
      guard !shown.isFinished else { return }
      if shown.isVisible { try? output.write("\r\u{1B}[K") }
      shown.isVisible = false
      shown.lastDraw = nil
    }
  }

  /// Ends the line; later updates have no effect.
  package func finish(_ ending: Ending = .clear) {
    shown.withLock { shown in
      guard isEnabled, !shown.isFinished else { return }
      shown.isFinished = true
      switch ending {
      case .clear:
        if shown.isVisible { try? output.write("\r\u{1B}[K") }
      case .leave:
        shown.state.elapsed = shown.start.duration(to: now())
        shown.state.rate = shown.state.averageRate
        draw(shown.state, &shown, ending: "\n")
      }
    }
  }

  private func change(_ body: (inout Shown, ContinuousClock.Instant) -> Void) {
    guard isEnabled else { return }
    shown.withLock { shown in
      guard !shown.isFinished else { return }
      let instant = now()
      body(&shown, instant)
      shown.lastChange = instant
      shown.state.elapsed = shown.start.duration(to: instant)
      if let last = shown.lastDraw, last.duration(to: instant) < interval { return }
      shown.lastDraw = instant
      measure(&shown, at: instant)
      draw(shown.state, &shown)
    }
  }

  private func draw(_ state: ProgressState, _ shown: inout Shown, ending: String = "") {
    try? output.write("\r\(Self.render(state, width: width))\u{1B}[K\(ending)")
    shown.isVisible = true
  }

  /// Measures the rate: the average so far in the first five seconds, then a mean with about the
  /// same delay. There is no rate before one interval has passed: it would be far off.
  private func measure(_ shown: inout Shown, at instant: ContinuousClock.Instant) {
    let span = shown.measured.at.duration(to: instant)
    guard span > .zero, span >= interval else { return }
    let seconds = span / .seconds(1)
    let latest = max(0, Double(shown.state.completed - shown.measured.completed) / seconds)
    let weight = max(1 - exp(-seconds / 5), span / shown.state.elapsed)
    let before = shown.state.rate ?? 0
    shown.state.rate = before + (latest - before) * weight
    shown.measured = (instant, shown.state.completed)
  }
}

extension ProgressBar {
  /// Returns the line for a state in at most `width` columns; pure. Notes are dropped from the end,
  /// then the bar, then the label is cut.
  package static func render(
    _ state: ProgressState, width: Int, with glyphs: Glyphs = .current
  ) -> String {
    let label = state.label.escapedForTerminal
    var notes = state.notes
    while true {
      let tail = notes.joined(separator: "  ")
      let room = width - label.displayWidth - tail.displayWidth - 4
      if let fraction = state.fraction {
        if room >= 10 { return "\(label)  \(bar(fraction, min(30, room), glyphs))  \(tail)" }
      } else if room >= 1 {
        return "\(label)  \(spinner(state.elapsed, glyphs))  \(tail)"
      }
      if notes.count > 1 {
        notes.removeLast()
      } else {
        let room = width - tail.displayWidth - 2
        guard room >= 8 else { return "\(label)  \(tail)".truncated(toWidth: width, with: glyphs) }
        return "\(label.truncated(toWidth: room, with: glyphs))  \(tail)"
      }
    }
  }

  private static func bar(_ fraction: Double, _ columns: Int, _ glyphs: Glyphs) -> String {
    let filled = glyphs.bar(eighths: Int(fraction * Double(columns * 8)))
    return filled + String(repeating: glyphs.empty, count: columns - filled.count)
  }

  private static func spinner(_ elapsed: Duration, _ glyphs: Glyphs) -> Character {
    let frames = glyphs.spinner
    return frames[max(0, Int(elapsed / .milliseconds(100))) % frames.count]
  }
}

extension ProgressState {
  fileprivate var averageRate: Double? {
    elapsed > .zero ? Double(completed) / (elapsed / .seconds(1)) : nil
  }
}

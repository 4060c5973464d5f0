import Foundation

/// The facts about the output's terminal; a value, so tests can make one up.
package struct Terminal: Sendable, Equatable {
  /// True if standard output is a terminal.
  package var isOutputTerminal: Bool
  /// True if standard error is a terminal that can redraw lines: TERM is not `dumb`.
  package var isErrorTerminal: Bool
  /// Columns; 80 if the number is not known.
  package var width: Int
  /// Lines; 24 if the number is not known.
  package var height: Int
  /// True if colour may be used on standard output: it is a terminal, NO_COLOR is unset or empty,
  /// and TERM is not `dumb`.
  package var hasColour: Bool

  /// Creates a made-up terminal.
  package init(
    isOutputTerminal: Bool = false, isErrorTerminal: Bool = false, width: Int = 80,
    height: Int = 24, hasColour: Bool = false
  ) {
    self.isOutputTerminal = isOutputTerminal
    self.isErrorTerminal = isErrorTerminal
    self.width = width
    self.height = height
    self.hasColour = hasColour
  }

  /// Returns the terminal of this process, as it is now.
  package static func current(
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> Terminal {
    let isOutputTerminal = isatty(1) == 1
    return Terminal(
      isOutputTerminal: isOutputTerminal,
      isErrorTerminal: isatty(2) == 1 && allowsDrawing(environment),
      width: (window(1)?.columns ?? window(2)?.columns) ?? width(in: environment),
      height: (window(2)?.lines ?? window(1)?.lines) ?? 24,
      hasColour: isOutputTerminal && allowsColour(environment))
  }

  /// True if a user types on a terminal and reads there: standard input and output are terminals.
  package static var isInteractive: Bool { isatty(0) == 1 && isatty(1) == 1 }

  /// Columns to lay tables out in: unlimited when the output is not read by a person.
  package var tableWidth: Int? { isOutputTerminal ? width : nil }

  /// Returns whether colours are allowed; see no-color.org.
  static func allowsColour(_ environment: [String: String]) -> Bool {
    (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
  }

  /// Returns whether the terminal understands more than lines of text.
  static func allowsDrawing(_ environment: [String: String]) -> Bool {
    environment["TERM"] != "dumb"
  }

  /// Returns `COLUMNS` if it makes sense.
  static func width(in environment: [String: String]) -> Int {
    environment["COLUMNS"].flatMap { Int($0) }.map { min(1000, max(20, $0)) } ?? 80
  }

  /// Returns the size reported by the terminal; `nil` for unknown values.
  private static func window(_ descriptor: Int32) -> (columns: Int?, lines: Int?)? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 else { return nil }
    return (
      size.ws_col > 0 ? Int(size.ws_col) : nil, size.ws_row > 0 ? Int(size.ws_row) : nil
    )
  }
}

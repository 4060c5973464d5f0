import FerryPlatform

/// A failure as the user of a command reads it: an event, the cause, and the next step.
package struct CommandFailure: Error, Sendable, Equatable {
  /// The failure, in a few words without a full stop.
  package var what: String
  /// The reason of the failure.
  package var why: String
  /// The next step for the user.
  package var next: String
  /// The exit status it ends the process with.
  package var status: ExitStatus
  /// A stable `snake_case` name for scripts; never changes once released.
  package var code: String

  /// Leaves `why` or `next` out of the rendering when they are empty.
  package init(
    _ what: String, why: String, next: String, status: ExitStatus = .failed, code: String
  ) {
    self.what = what
    self.why = why
    self.next = next
    self.status = status
    self.code = code
  }

  /// The object for `--json`: `{"error":{"code":…,"message":…,"why":…,"next":…}}`.
  package var json: JSONText {
    .object([
      (
        "error",
        .object([
          ("code", .string(code)), ("message", .string(what)), ("why", .string(why)),
          ("next", .string(next)),
        ])
      )
    ])
  }

  /// Returns three short lines without a final newline: `ferry: what`, `  why: …`, `  next: …`.
  /// Text from elsewhere is escaped, so it can neither drive the terminal nor add lines.
  package func text(program: String) -> String {
    var lines = ["\(program): \(Self.oneLine(what))"]
    if !why.isEmpty { lines.append("  why: \(Self.oneLine(why))") }
    if !next.isEmpty { lines.append("  next: \(Self.oneLine(next))") }
    return lines.joined(separator: "\n")
  }

  private static func oneLine(_ text: String) -> String {
    text.lines.joined(separator: " ").escapedForTerminal
  }
}

/// An error with an explanation for the user of a command.
package protocol CommandFailureConvertible: Error {
  /// The explanation for `CommandRunner` to print, and the exit status.
  var commandFailure: CommandFailure { get }
}

extension CommandFailure: CommandFailureConvertible {
  /// The failure itself.
  package var commandFailure: CommandFailure { self }
}

extension CommandFailure {
  /// Explains any error; shows an error without an explanation by its description.
  package init(_ error: any Error, command: String) {
    if let convertible = error as? any CommandFailureConvertible {
      self = convertible.commandFailure
    } else if error is CancellationError {
      self.init(
        "\(command) was cancelled", why: "it was stopped before its end",
        next: "run it again to continue", code: "cancelled")
    } else {
      self.init(
        "\(command) failed", why: String(describing: error),
        next: "if this looks like a defect, report it with the command", code: "unexpected")
    }
  }
}

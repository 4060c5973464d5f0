/// The result of a command, reported to the shell as the exit status.
package enum ExitStatus: Int32, Sendable, CaseIterable {
  /// 0: the command succeeded.
  case done = 0
  /// 1: the command failed.
  case failed = 1
  /// 2: the command line makes no sense; the command did not start.
  case usage = 2
  /// 3: offline, the other side cannot be reached, or another program locks a file; work is kept,
  /// try later.
  case unreachable = 3
  /// 4: a person has to do something first: decide (conflicts, quarantine), or give a token.
  case needsUser = 4
}

/// One line of the EXIT CODES section of a help text.
package struct ExitCodeNote: Sendable, Equatable {
  /// The status as the shell sees it, 0…255.
  package let code: Int32
  /// When it is returned.
  package let meaning: String

  /// Creates a note about any status, also one outside `ExitStatus` (130 after an interrupt).
  package init(_ code: Int32, _ meaning: String) {
    self.code = code
    self.meaning = meaning
  }

  /// The five statuses every command of the project uses.
  package static let standard: [ExitCodeNote] = [
    ExitCodeNote(0, "Done."),
    ExitCodeNote(1, "Failed; the message gives the reason."),
    ExitCodeNote(2, "Wrong usage; nothing was done."),
    ExitCodeNote(3, "Offline, unreachable or busy; work is kept, try again later."),
    ExitCodeNote(4, "Needs you: a decision (conflicts, quarantine) or a token that allows this."),
  ]
}

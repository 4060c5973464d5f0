import FerryCommandLine
import FerryShell

/// The lines of `ferry shell`.
struct ShellPresentation: Sendable {
  let asJSON: Bool

  /// Prints the address, and the declared services withheld from the page.
  func start(_ shell: FerryShell.Shell, version: PageVersion, withheld: [ServicePattern]) throws {
    let address = shell.makeAddress()
    let output = TextOutput.standardOutput
    guard !asJSON else {
      return try output.line(
        JSONText.object([
          ("event", .string("started")), ("address", .string(address)),
          ("port", .int(Int(shell.port))), ("bundle", .string(version.name)),
          ("version", .string(version.version)),
          ("withheld", .array(withheld.map { .string("\($0)") })),
        ]).text)
    }
    try output.line("\(version.name), version \(version.version): \(address)")
    guard !withheld.isEmpty else { return }
    let names = withheld.map { "--grant \($0)" }.joined(separator: " ")
    try TextOutput.standardError.lines([
      "ferry: the page does not get all services that it declares",
      "  why: the command grants no service by itself", "  next: add \(names)",
    ])
  }

  /// Prints an event.
  func show(_ event: ShellEvent) {
    let (name, version, detail) = Self.words(event)
    if asJSON {
      let json = JSONText.object([
        ("event", .string(name)), ("version", .string(orNull: version?.version)),
        ("detail", .string(orNull: detail)),
      ])
      try? TextOutput.standardOutput.line(json.text)
      return
    }
    let place = version.map { " version \($0.version)" } ?? ""
    let line = "\(name)\(place)" + (detail.map { ": \($0)" } ?? "")
    try? TextOutput.standardError.line(line.escapedForTerminal)
  }

  private static func words(_ event: ShellEvent) -> (String, PageVersion?, String?) {
    switch event {
    case .loaded(let version): ("loaded", version, nil)
    case .confirmed(let version): ("confirmed", version, nil)
    case .failed(let version, let failure, let fallsBack):
      ("failed", version, "\(failure)" + (fallsBack ? "; the last good version follows" : ""))
    case .unavailable(let error): ("unavailable", nil, "\(error)")
    case .refused(_, let reason): ("refused", nil, reason)
    case .serviceFailed(let name, let reason): ("service-failed", nil, "\(name): \(reason)")
    }
  }
}

import FerryCommandLine
import FerryProtocol
import FerrySyncServer

/// `ferryd feed`.
enum FeedCommand {
  static let root = CommandSpec(
    "feed", summary: "Print each committed transaction of a space once, as lines of JSON.",
    discussion: """
      Each line has a cursor. Store it together with your work on the line: `--since CURSOR` \
      continues behind it, also after a kill. Without --since, the feed begins with the oldest \
      transaction that the history has whole. The history is as old as the space's retention. A \
      transaction of more than 500 operations has several lines; all of them but the last have \
      "continues": true. The command works on the store, even while a server runs. With --server it \
      asks a server instead, with a token of the role admin.
      """,
    options: [
      OptionSpec(
        "since", value: "CURSOR",
        help: "The cursor of the last line you have, or of the last page of a pull list."),
      OptionSpec(
        "interval", value: "TIME", help: "The pause between two looks at the head, with --follow.",
        kind: .duration, default: "1s"),
    ] + MissionCommands.targetOptions,
    flags: [
      FlagSpec(
        "follow", short: "f", help: "Wait for further transactions until SIGTERM or SIGINT."),
      FlagSpec("json", help: "Lines are JSON in any case; with this flag, errors are as well."),
    ], arguments: [SpaceCommands.nameArgument],
    examples: [
      ExampleSpec("All transactions of the retention", "ferryd feed notes"),
      ExampleSpec(
        "Continue behind a line, and wait for more",
        "ferryd feed notes --follow --since 5f3c9a1be2d40718.9.9"),
    ]
  ) { arguments in
    let since = try arguments.stringIfPresent("since").map { try cursor($0) }
    let pause = try arguments.duration("interval")
    try await FeedSources.with(arguments) { source in
      var place = since
      repeat {
        guard let page = try await next(of: source, after: place, follows: arguments.flag("follow"))
        else { return }
        if let last = page.last {
          try TextOutput.standardOutput.lines(page.lines.map(\.safeJSON))
          place = last
          continue
        }
        guard arguments.flag("follow") else { return }
        do { try await Task.sleep(for: max(pause, pauseMin)) } catch { return }
      } while true
    }
    return .done
  }

  /// The shortest pause between two looks at the head.
  private static let pauseMin = Duration.milliseconds(10)

  /// Returns the next page; `nil` after the end by a signal.
  ///
  /// - Parameter follows: whether an unreachable source counts as one without news.
  private static func next(
    of source: any FeedSource, after place: Cursor?, follows: Bool
  ) async throws -> FeedPage? {
    do {
      return try await source.page(after: place)
    } catch {
      if Task.isCancelled { return nil }
      guard follows, isTransient(error) else { throw error }
      try TextOutput.standardError.line("ferryd: the feed waits: \(error)")
      return FeedPage(lines: [], last: nil)
    }
  }

  private static func isTransient(_ error: any Error) -> Bool {
    switch error {
    case let failure as CommandFailure: failure.status == .unreachable
    case let problem as Problem: problem.code.action == .retry
    case let failure as StoreError: failure.commandFailure.code.begins(with: "database_")
    default: false
    }
  }

  private static func cursor(_ text: String) throws(UsageError) -> Cursor {
    guard let cursor = Cursor(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not a cursor",
        why: "--since takes the member cursor of a line of the feed",
        next: "copy it from the last line you have, or leave it out to begin with the oldest one")
    }
    return cursor
  }
}

extension String {
  /// The same JSON, with escapes for characters that could drive a terminal. A JSON text has such
  /// characters in strings only.
  fileprivate var safeJSON: String {
    guard escapedForTerminal != self else { return self }
    var result = ""
    for text in unicodeScalars.map({ String($0) }) {
      if text.escapedForTerminal == text {
        result += text
      } else {
        for unit in text.utf16 {
          let digits = String(unit, radix: 16)
          result += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
        }
      }
    }
    return result
  }
}

import Testing

@testable import FerryMirror

/// The waits of rounds for a reader of the log that is behind.
@Suite("Waits for the log")
struct LogPatienceTests {
  /// Returns `true` if a wait is over at the end of a story: a dot is a slice of 5 s, and letters are
  /// the reader's events (received, stored, failed), or the begin of another wait.
  private func isOver(_ story: String) -> Bool {
    var (patience, goesOn) = (LogPatience(), true)
    for event in story {
      switch event {
      case ".": goesOn = patience.waits(after: .seconds(5))
      case "r": patience.receive()
      case "s": patience.store()
      case "f": patience.fail()
      default: patience.begin()
      }
    }
    return !goesOn
  }

  @Test(
    "a round waits as long as the reader advances, and 20 seconds without an advance",
    arguments: [
      ("...", false), ("....", true),
      ("...r...", false), ("...r....", true), ("...s...", false), ("...s....", true),
      (".r.r.r.r.r.r.r.r.", false),
      // After a failure, PostgreSQL sends the same messages again.
      (".f.r.", false), (".f.r.r.", true), ("f.r.r.f.r.r.", true),
      ("f..s...", false), ("f..s..r...", false), ("...fs..r...", false),
      // The next wait has the whole time, also behind a failure.
      ("....b...", false), ("...b....", true), ("f....b...", false), ("f..b.r.r.r.", true),
    ])
  func patience(story: String, isOver expected: Bool) {
    #expect(isOver(story) == expected)
  }
}

import Ferry
import FerryCommandLine
import Synchronization

/// Shows a download: a bar on a terminal, or lines of JSON on request.
final class DownloadDisplay: Sendable {
  private struct State {
    var shown: DownloadStatus?
    /// The begin of a wait for a condition that may never come.
    var waitingSince: ContinuousClock.Instant?
    var reason: DownloadError?
    /// The most local bytes of the file so far.
    var highest: Int64 = 0
    /// True if bytes arrive since the last failure.
    var isReceiving = false
  }

  private let label: String
  private let asJSON: Bool
  private let lines = ProgressLines()
  private let start = ContinuousClock.now
  private let state = Mutex(State())

  init(label: String, asJSON: Bool) {
    self.label = label
    self.asJSON = asJSON
  }

  func show(_ status: DownloadStatus) {
    let before = state.withLock { state in
      defer { state.shown = status }
      update(status, &state)
      return state.shown
    }
    if asJSON { return print(status, after: before) }
    if status.state != before?.state || status.reason != before?.reason, let reason = status.reason
    {
      lines.print("\(label) \(status.state.rawValue): \(reason)")
    }
    lines.show([
      ProgressState(
        label: label, unit: .bytes, completed: status.progress.bytesDone,
        total: status.progress.bytesTotal, elapsed: start.duration(to: .now),
        rate: status.bytesPerSecond)
    ])
  }

  /// Updates the state. A download still waits if the file has not grown since the last failure,
  /// although a part of it may arrive again.
  private func update(_ status: DownloadStatus, _ state: inout State) {
    if status.state == .ready, let reason = status.reason {
      state.reason = reason
      state.isReceiving = false
      if state.waitingSince == nil { state.waitingSince = .now }
    } else if status.progress.bytesDone > state.highest {
      (state.waitingSince, state.reason) = (nil, nil)
    } else if status.progress.bytesFetched > state.shown?.progress.bytesFetched ?? 0 {
      state.isReceiving = true
    }
    state.highest = max(state.highest, status.progress.bytesDone)
  }

  /// Returns the reason of a wait longer than `patience`; `nil` if there is none.
  func reason(after patience: Duration) -> DownloadError? {
    state.withLock { state in
      guard !state.isReceiving, let since = state.waitingSince,
        since.duration(to: .now) > patience
      else { return nil }
      return state.reason
    }
  }

  func finish() { lines.finish() }

  private func print(_ status: DownloadStatus, after before: DownloadStatus?) {
    let isNew = status.state != before?.state || status.reason != before?.reason
    let json: JSONText =
      isNew
      ? .object([
        ("event", .string("state")), ("state", .string(status.state.rawValue)),
        ("reason", status.reason.map { $0.json } ?? .null),
      ])
      : .object([
        ("event", .string("progress")), ("bytesDone", .int(status.progress.bytesDone)),
        ("bytes", status.progress.bytesTotal.map { .int($0) } ?? .null),
        ("bytesFetched", .int(status.progress.bytesFetched)),
        ("bytesPerSecond", status.bytesPerSecond.map { .double($0) } ?? .null),
      ])
    try? TextOutput.standardOutput.line(json.text)
  }
}

extension DownloadError {
  fileprivate var json: JSONText {
    .object([("code", .string(kind.code)), ("message", .string(message))])
  }
}

/// Describes every error of a download: what happened, why, and what to do next.
extension DownloadError: CommandFailureConvertible {
  package var commandFailure: CommandFailure {
    let again = "run the same command again; the fetched part is kept"
    func failure(
      _ what: String, _ next: String, _ status: ExitStatus = .failed
    ) -> CommandFailure {
      CommandFailure(
        what, why: message, next: next, status: status, code: "download_\(kind.code)")
    }
    switch kind {
    case .offline, .changed, .waiting:
      return failure("the download is not complete", again, .unreachable)
    case .busy: return failure("another process is fetching this file", again, .unreachable)
    case .server(401), .server(403), .server(407):
      return failure("the server denies access to the file", "ask its publisher", .needsUser)
    case .server where isTransient:
      return failure("the download is not complete", again, .unreachable)
    case .server:
      return failure("the server does not have the file", "check the address")
    case .wrongContent:
      return failure(
        "the file is not the expected one",
        "check the address and --sha256; the fetched content was removed")
    case .wrongAnswer:
      return failure("the server's answer cannot be used", "check the address")
    case .diskFull:
      return failure("there is not enough disk space", "free some disk space, then \(again)")
    case .file:
      return failure("the file cannot be written", "check PATH and its folder, then \(again)")
    case .dependency: return failure("another download comes first", again)
    case .cancelled: return failure("interrupted", again)
    }
  }
}

import Ferry
import FerryCommandLine
import FerryPlatform
import Synchronization

/// Shows a mission manager's events: bars on a terminal, or lines of JSON on request.
final class MissionDisplay: Sendable {
  private struct State {
    /// The begin of a mission's wait for a condition that may never come.
    var waitingSince: ContinuousClock.Instant?
  }

  private let asJSON: Bool
  private let lines = ProgressLines()
  private let state = Mutex(State())

  init(asJSON: Bool) { self.asJSON = asJSON }

  func show(_ event: MissionEvent) {
    update(event)
    if asJSON {
      try? TextOutput.standardOutput.line(event.json.text)
      return
    }
    switch event {
    case .progress(let progress): lines.show(progress.bars)
    case .changed(let id, let mission, let reason):
      let why = reason.map { ": \($0)" } ?? ""
      lines.print("\(id) \(mission.rawValue)\(why)")
    case .removed(let id): lines.print("\(id) removed")
    case .item: break
    }
  }

  /// Returns true if a mission has waited this long for a condition outside of this command, such
  /// as a connection.
  func hasWaited(longerThan patience: Duration) -> Bool {
    let since = state.withLock { $0.waitingSince }
    return since.map { $0.duration(to: .now) > patience } ?? false
  }

  func finish() { lines.finish() }

  private func update(_ event: MissionEvent) {
    guard case .changed(_, let mission, let reason) = event else { return }
    let isWaiting = mission == .downloading && reason?.isTransient == true
    state.withLock { state in
      state.waitingSince = isWaiting ? state.waitingSince ?? .now : nil
    }
  }
}

/// Shows missions fetched by other processes, by repeated reads of their state.
struct MissionWatch {
  private static let pause = Duration.milliseconds(300)

  let asJSON: Bool

  /// Shows the missions returned by `find` until none of them is under way.
  func watch(_ find: () async throws -> [MissionStatus]) async throws {
    let lines = ProgressLines()
    defer { lines.finish() }
    var last: [MissionStatus] = []
    while true {
      let found = try await find().filter(\.isUnderWay)
      if asJSON, found != last {
        try TextOutput.standardOutput.lines(found.map { MissionPresentation.json($0).text })
      }
      last = found
      if !found.contains(where: { $0.state != .paused && !$0.isInterrupted }) { return }
      lines.show(found.map(\.bar))
      try await Task.sleep(for: Self.pause)
    }
  }
}

extension MissionStatus {
  fileprivate var bar: ProgressState {
    ProgressState(
      label: "\(id) \(stateName)", unit: .bytes, completed: bytesDone,
      total: bytesTotal)
  }
}

extension MissionProgress {
  /// A bar for the whole with the rate and the time left, then one for each current item.
  fileprivate var bars: [ProgressState] {
    let whole = ProgressState(
      label: "\(id)  \(itemsDone.grouped)/\(items.counted("file"))", unit: .bytes,
      completed: bytesDone, total: bytesTotal, rate: bytesPerSecond)
    return [whole]
      + underWay.map {
        ProgressState(
          label: "  \($0.shortPath)", unit: .bytes, completed: $0.bytesDone, total: $0.bytesTotal)
      }
  }
}

extension ItemProgress {
  /// The path, or the end of a long one, to distinguish items of one folder.
  fileprivate var shortPath: String {
    guard path.displayWidth > 40, let name = path.words(at: "/").last else { return path }
    return "\(Glyphs.current.ellipsis)/\(name)"
  }
}

extension MissionEvent {
  fileprivate var json: JSONText {
    switch self {
    case .changed(let id, let state, let reason):
      .object([
        ("event", .string("state")), ("mission", .string(id.value)),
        ("state", .string(state.rawValue)),
        ("reason", reason.map { MissionPresentation.json($0) } ?? .null),
      ])
    case .progress(let progress): progress.json
    case .item(let id, let path):
      .object([
        ("event", .string("item")), ("mission", .string(id.value)), ("path", .string(path)),
      ])
    case .removed(let id):
      .object([("event", .string("removed")), ("mission", .string(id.value))])
    }
  }
}

extension MissionProgress {
  fileprivate var json: JSONText {
    .object([
      ("event", .string("progress")), ("mission", .string(id.value)), ("version", .int(version)),
      ("bytesDone", .int(bytesDone)), ("bytes", .int(bytesTotal)),
      ("bytesFetched", .int(bytesFetched)), ("itemsDone", .int(itemsDone)), ("items", .int(items)),
      ("bytesPerSecond", bytesPerSecond.map { .double($0) } ?? .null),
      ("secondsLeft", timeLeft.map { .double($0 / .seconds(1)) } ?? .null),
      (
        "underWay",
        .array(
          underWay.map {
            .object([
              ("path", .string($0.path)), ("bytesDone", .int($0.bytesDone)),
              ("bytes", .int($0.bytesTotal)),
            ])
          })
      ),
    ])
  }
}

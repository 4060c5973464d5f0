import FerryMirror
import FerrySyncServer

/// Runs a mirror or a group of mirrors, and opens it again after a failure, until the task is
/// cancelled.
struct MirrorRunner: Sendable {
  let name: String
  /// The folder of all mirrors.
  let root: String
  let log: ServiceLog
  /// Shows the mirrors' figures to the server's metrics.
  var gauges = MirrorGauges()

  /// Runs it in a process with other work. A mirror is tried again after it has stopped itself.
  func run() async {
    try? await retrying(name, endsWhenStopped: false) {
      guard folder.isGroup else { return try await run(name, folder, nil) }
      let group = try MirrorGroup(name, in: root)
      log.write(.info, "a group of mirrors runs", detail: name)
      try await group.run(log: report(name)) { name, folder, database in
        try? await retrying(name, endsWhenStopped: false) {
          try await run(name, folder, database)
        }
      }
    }
  }

  /// Runs it in a separate process.
  ///
  /// - Throws: ``MirrorStopped`` if a mirror without a group has stopped itself.
  func runUntilStopped() async throws {
    if folder.isGroup { return await run() }
    try await retrying(name, endsWhenStopped: true) { try await run(name, folder, nil) }
  }

  private var folder: MirrorFolder { MirrorFolder(name, in: root) }

  private func run(_ name: String, _ folder: MirrorFolder, _ shared: MirrorDatabase?) async throws {
    let mirror = try await Mirror.open(folder, sharing: shared, log: report(name))
    log.write(.info, "a mirror runs", detail: name)
    do {
      try await mirror.run { [gauges, space = mirror.configuration.space] in
        gauges.show($0, of: name, in: space)
      }
      await mirror.close()
    } catch {
      await mirror.close()
      throw error
    }
  }

  private func report(_ name: String) -> Mirror.Log {
    { [log] event, detail in
      let level: LogLevel =
        ["error", "role", "unsent", "stopped"].contains(event) ? .warning : .info
      log.write(level, "a mirror reports", detail: "\(name): \(event): \(detail)")
    }
  }

  /// Repeats `body` with growing pauses. After a long run, the pauses begin short again.
  ///
  /// - Throws: ``MirrorStopped`` only.
  private func retrying(
    _ name: String, endsWhenStopped: Bool, _ body: () async throws -> Void
  ) async throws(MirrorStopped) {
    let clock = ContinuousClock()
    var pause = Duration.milliseconds(500)
    while !Task.isCancelled {
      let start = clock.now
      do {
        try await body()
      } catch {
        if Task.isCancelled { return }
        if start.duration(to: clock.now) > .seconds(60) { pause = .milliseconds(500) }
        log.write(.error, "a mirror stopped", detail: "\(name): \(error)")
        if endsWhenStopped, let stopped = error as? MirrorStopped { throw stopped }
        try? await Task.sleep(for: pause)
        pause = min(pause * 2, .seconds(30))
      }
    }
  }
}

extension MirrorGauges {
  /// Shows the figures of a mirror from now on.
  func show(_ figures: Mirror.Figures, of name: String, in space: String) {
    var gauge = MirrorGauge(
      space: space, unsent: figures.unsent, deferred: figures.deferred,
      isStopped: figures.isStopped)
    (gauge.captured, gauge.capturedSince) = (figures.captured, figures.capturedSince)
    (gauge.behindSince, gauge.lastRound) = (figures.behindSince, figures.lastRound)
    (gauge.returned, gauge.rejected) = (figures.returned, figures.rejected)
    gauge.failingViews = figures.failingViews
    gauge.log = figures.log.map { MirrorGauge.Log(bytes: $0.bytes, isSafe: $0.isSafe) }
    show(gauge, of: name)
  }
}

import FerryMirror
import FerrySyncServer

/// Runs a mirror or a group of mirrors, and opens it again after a failure, until the task is cancelled.
struct MirrorRunner: Sendable {
  let name: String
  /// The folder of all mirrors.
  let root: String
  let log: ServiceLog

  func run() async {
    await retrying(name) {
      guard MirrorFolder(name, in: root).isGroup else {
        return try await run(name, MirrorFolder(name, in: root), nil)
      }
      let group = try MirrorGroup(name, in: root)
      log.write(.info, "a group of mirrors runs", detail: name)
      try await group.run(log: report(name)) { name, folder, database in
        await retrying(name) { try await run(name, folder, database) }
      }
    }
  }

  private func run(_ name: String, _ folder: MirrorFolder, _ shared: MirrorDatabase?) async throws {
    let mirror = try await Mirror.open(folder, sharing: shared, log: report(name))
    log.write(.info, "a mirror runs", detail: name)
    do {
      try await mirror.run()
      await mirror.close()
    } catch {
      await mirror.close()
      throw error
    }
  }

  private func report(_ name: String) -> Mirror.Log {
    { [log] event, detail in
      let level: LogLevel = ["error", "role"].contains(event) ? .warning : .info
      log.write(level, "a mirror reports", detail: "\(name): \(event): \(detail)")
    }
  }

  /// Repeats `body` with growing pauses. One that ran for a while begins with a short pause again.
  private func retrying(_ name: String, _ body: () async throws -> Void) async {
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
        try? await Task.sleep(for: pause)
        pause = min(pause * 2, .seconds(30))
      }
    }
  }
}

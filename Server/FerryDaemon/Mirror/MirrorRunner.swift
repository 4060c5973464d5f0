import FerryMirror
import FerrySyncServer

/// Runs a mirror, and opens it again after a failure, until the task is cancelled.
struct MirrorRunner: Sendable {
  let name: String
  let folder: MirrorFolder
  let log: ServiceLog

  func run() async {
    var pause = Duration.milliseconds(500)
    while !Task.isCancelled {
      do {
        let mirror = try await Mirror.open(folder) { [name, log] event, detail in
          let level: LogLevel = event == "error" ? .warning : .info
          log.write(level, "a mirror reports", detail: "\(name): \(event): \(detail)")
        }
        log.write(.info, "a mirror runs", detail: name)
        pause = .milliseconds(500)
        do {
          try await mirror.run()
          await mirror.close()
        } catch {
          await mirror.close()
          throw error
        }
      } catch {
        if Task.isCancelled { return }
        log.write(.error, "a mirror stopped", detail: "\(name): \(error)")
        try? await Task.sleep(for: pause)
        pause = min(pause * 2, .seconds(30))
      }
    }
  }
}

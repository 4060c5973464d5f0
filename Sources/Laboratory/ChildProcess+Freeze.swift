import Foundation

extension ChildProcess {
  /// Stops it with SIGSTOP wherever it is. Returns when each of its threads stands still, or it has
  /// ended (Linux only).
  package func freeze(within limit: Duration = .hangLimit) async throws {
    send(SIGSTOP)
    let deadline = ContinuousClock.now + limit
    while endedWith == nil, !(try standsStill()) {
      guard ContinuousClock.now < deadline else {
        throw TestSupportError("process \(processID) does not stand still after \(limit)")
      }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  private func standsStill() throws -> Bool {
    let threads = "/proc/\(processID)/task"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: threads)) ?? []
    return names.allSatisfy { name in
      let status = try? String(contentsOfFile: "\(threads)/\(name)/status", encoding: .utf8)
      // "T" is stopped, "Z" has ended (proc(5)); a thread that is gone does nothing either.
      return status.map { $0.contains("State:\tT") || $0.contains("State:\tZ") } ?? true
    }
  }
}

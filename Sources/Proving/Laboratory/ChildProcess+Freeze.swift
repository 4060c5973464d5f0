import Foundation

extension ChildProcess {
  /// Stops the process with SIGSTOP. Returns when each thread of it is stopped, or the process has
  /// ended (Linux only).
  package func freeze(within limit: Duration = .hangLimit) async throws {
    send(SIGSTOP)
    try await eventually("process \(processID) to stop", within: limit) {
      try endedWith != nil || standsStill()
    }
  }

  private func standsStill() throws -> Bool {
    let threads = "/proc/\(processID)/task"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: threads)) ?? []
    return names.allSatisfy { name in
      let status = try? String(contentsOfFile: "\(threads)/\(name)/status", encoding: .utf8)
      // "T" is stopped, "Z" has ended (proc(5)); a missing thread does not run either.
      return status.map { $0.contains("State:\tT") || $0.contains("State:\tZ") } ?? true
    }
  }
}

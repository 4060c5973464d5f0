import FerryLaboratory
import Foundation
import Synchronization

/// A program that is started again whenever it ends, as a system's supervisor does it.
final class Supervisor: Sendable {
  /// The way to run the program, and the normal endings.
  struct Program: Sendable {
    var name: String
    var executable: URL
    var arguments: [String]
    /// Exit codes with which it may end by itself.
    var codes: Set<Int32> = []
    /// Between an end and the next start.
    var pause: Duration = .milliseconds(200)
  }

  private struct State {
    var child: ChildProcess?
    /// The number of faults that prevent a start.
    var holds = 0
    /// The process killed by a fault.
    var killed: Int32?
    var starts = 0
    var log = ""
    var unexpectedEnds: [String] = []
  }

  let program: Program
  private let chronicle: Chronicle
  private let state = Mutex(State())

  init(_ program: Program, _ chronicle: Chronicle) {
    self.program = program
    self.chronicle = chronicle
  }

  /// Keeps the program running until cancelled; then it is killed.
  func run() async {
    while !Task.isCancelled {
      do {
        while state.withLock({ $0.holds > 0 }) { try await Task.sleep(for: .milliseconds(20)) }
        try await runOnce()
        try await Task.sleep(for: program.pause)
      } catch is CancellationError {
        break
      } catch {
        record(unexpected: "cannot be started: \(error)")
        break
      }
    }
    end()
  }

  private func runOnce() async throws {
    let child = try ChildProcess(program.executable, program.arguments)
    let isHeld = state.withLock { state in
      state.child = child
      state.starts += 1
      return state.holds > 0
    }
    // A fault that came during the start.
    if isHeld { kill() }
    chronicle.append(program.name, "started as process \(child.processID)")
    let status = try await child.exitStatus(within: .seconds(86_400))
    let wasKilled = state.withLock { state in
      state.child = nil
      state.log += child.output + child.error
      return state.killed == child.processID
    }
    switch status {
    case .killed(SIGKILL) where wasKilled: chronicle.append(program.name, "was killed")
    case .exited(let code) where program.codes.contains(code): break
    case .exited, .killed:
      let end = "ended by itself, \(status): \(child.error.suffix(1_000))"
      record(unexpected: end)
    }
  }

  private func record(unexpected end: String) {
    chronicle.append(program.name, end)
    state.withLock { $0.unexpectedEnds.append("\(program.name) \(end)") }
  }

  private func end() {
    let child = state.withLock { state in
      defer { state.child = nil }
      state.log += (state.child?.output ?? "") + (state.child?.error ?? "")
      return state.child
    }
    child?.send(SIGKILL)
  }

  // MARK: Faults

  /// Kills it, and keeps it down until `release`.
  func stop() {
    state.withLock { $0.holds += 1 }
    kill()
  }

  func release() { state.withLock { $0.holds = max(0, $0.holds - 1) } }

  /// Kills it; it is started again soon.
  func kill() {
    let child = state.withLock { state in
      state.killed = state.child?.processID
      return state.child
    }
    child?.send(SIGKILL)
  }

  /// The running process.
  var child: ChildProcess? { state.withLock { $0.child } }

  // MARK: Results

  /// Starts so far.
  var starts: Int { state.withLock { $0.starts } }

  /// Endings without a fault as the reason.
  var unexpectedEnds: [String] { state.withLock { $0.unexpectedEnds } }

  /// The output of all processes.
  var log: String {
    state.withLock { $0.log + ($0.child?.output ?? "") + ($0.child?.error ?? "") }
  }
}

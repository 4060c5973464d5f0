import FerryTestSupport
import Foundation

/// A real browser that takes steps in a page; see Scripts/browse.py.
struct PageBrowser {
  /// A visit, continued while the test acts.
  final class Visit: Sendable {
    let process: ChildProcess

    fileprivate init(_ process: ChildProcess) { self.process = process }

    /// Waits for the result of a step, counted from 0.
    func result<Value: Decodable>(_ type: Value.Type = String.self, of step: Int) async throws
      -> Value
    {
      let line = try await eventually("the result of step \(step)", from: process) {
        process.lines.dropFirst(step).first
      }
      return try JSONDecoder().decode(type, from: Data(line.utf8))
    }

    /// Waits for the end of the visit.
    func finish() async throws {
      guard try await process.exitStatus() == .exited(0) else {
        throw TestSupportError("the visit failed: \(process.error)")
      }
    }
  }

  /// Opens an address and takes steps; the body of a step is repeated until it returns a value.
  static func visit(_ address: String, _ steps: String...) throws -> Visit {
    let script = Project.file("Scripts/browse.py")
    return Visit(
      try ChildProcess(
        URL(filePath: "/usr/bin/env"), ["python3", script.path, "--time", "600", address] + steps))
  }
}

extension ChildProcess {
  fileprivate var lines: [String] {
    // The last line may be incomplete.
    output.components(separatedBy: "\n").dropLast()
  }
}

import Foundation

/// A process whose end ends all waits for its deeds.
package protocol CapturedProcess: Sendable {
  /// The exit status and the last output; `nil` while the process runs.
  var endReport: String? { get }
}

/// Repeats a probe until it returns a result. All polls of tests are calls of this function, so
/// each wait has a description, a limit, and an end when the process has ended.
///
/// - Parameters:
///   - what: The awaited event, for the error: "the page's edit on the device".
///   - process: The process responsible for the event. After its end the probe runs once more.
/// - Throws: A ``TestSupportError`` with `what`, if the process has ended or the time is over.
@discardableResult
package func eventually<Answer: Sendable>(
  _ what: @autoclosure () -> String, from process: (any CapturedProcess)? = nil,
  within limit: Duration = .hangLimit, isolation: isolated (any Actor)? = #isolation,
  _ probe: () async throws -> Answer?
) async throws -> Answer {
  let deadline = ContinuousClock.now + limit
  var polls = 0
  while true {
    let end = process?.endReport
    if let answer = try await probe() { return answer }
    if let end { throw TestSupportError("waited for \(what()), but \(end)") }
    guard ContinuousClock.now < deadline else {
      throw TestSupportError("gave up waiting for \(what()) after \(limit)")
    }
    polls += 1
    try await pause(after: polls)
  }
}

/// Waits until a condition is true; see the other function of this name.
package func eventually(
  _ what: @autoclosure () -> String, from process: (any CapturedProcess)? = nil,
  within limit: Duration = .hangLimit, isolation: isolated (any Actor)? = #isolation,
  holds: () async throws -> Bool
) async throws {
  try await eventually(what(), from: process, within: limit) { try await holds() ? true : nil }
}

/// Blocks a thread of a test's own until a condition is true.
///
/// - Throws: A ``TestSupportError`` with `what`, if the time is over.
package func block(
  until what: @autoclosure () -> String, within limit: Duration = .hangLimit,
  holds: () throws -> Bool
) throws {
  let deadline = ContinuousClock.now + limit
  while try !holds() {
    guard ContinuousClock.now < deadline else {
      throw TestSupportError("gave up waiting for \(what()) after \(limit)")
    }
    Thread.sleep(forTimeInterval: 0.001)
  }
}

/// Gives way to other tasks at first, which may be enough, and to processes later.
private func pause(after polls: Int) async throws {
  try Task.checkCancellation()
  if polls < 100 {
    await Task.yield()
  } else {
    try await Task.sleep(for: .milliseconds(5))
  }
}

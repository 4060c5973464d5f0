import FerryTestSupport
import Testing

/// Asks again and again until there is a result, for events of other processes.
///
/// - Throws: An error with `what`, if there is no result in time.
@discardableResult
func eventually<Answer: Sendable>(
  _ what: String, within limit: Duration = .hangLimit, _ probe: () async throws -> Answer?
) async throws -> Answer {
  let deadline = ContinuousClock.now + limit
  while true {
    if let answer = try await probe() { return answer }
    guard ContinuousClock.now < deadline else {
      throw TestSupportError("gave up waiting for \(what) after \(limit)")
    }
    try await Task.sleep(for: .milliseconds(10))
  }
}

/// Waits until something holds.
func eventually(
  _ what: String, within limit: Duration = .hangLimit, holds: () async throws -> Bool
) async throws {
  try await eventually(what, within: limit) { try await holds() ? true : nil }
}

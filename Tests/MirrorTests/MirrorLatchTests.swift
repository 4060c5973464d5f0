import FerryTestSupport
import Testing

@testable import FerryMirror

/// The gate before the work that needs the tables.
@Suite("Waits for a mirror's first round", .hangLimit)
struct MirrorLatchTests {
  @Test("all tasks pass when the gate opens, and later ones at once")
  func opens() async throws {
    let latch = MirrorLatch()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<3 { group.addTask { await latch.wait() } }
      try await eventually("three tasks wait") { latch.waitingCount == 3 }
      latch.open()
      try await group.waitForAll()
    }
    await latch.wait()
    #expect(latch.waitingCount == 0)
  }

  @Test("a cancelled task passes a closed gate, and the others wait on")
  func cancelled() async throws {
    let latch = MirrorLatch()
    let other = Task { await latch.wait() }
    let task = Task { await latch.wait() }
    try await eventually("two tasks wait") { latch.waitingCount == 2 }
    task.cancel()
    await task.value
    #expect(latch.waitingCount == 1)
    latch.open()
    await other.value
  }
}

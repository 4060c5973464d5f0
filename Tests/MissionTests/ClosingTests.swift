import FerryTestSupport
import Testing

@testable import FerryMissions

/// The end of a manager's work, for every caller.
@Suite(.hangLimit)
struct ClosingTests {
  @Test("closing waits quietly for the running work, even in a cancelled task")
  func cancelled() async throws {
    let shelf = Shelf()
    let bytes = content(1, 200_000)
    shelf.publish(Publication("a", [("film.mp4", bytes)]))
    shelf.obstruct(bytes, .hangs(after: 70_000))
    let device = try await Device(shelf)
    try await device.manager.download([mission("a")])
    try await eventually("the fetch") { shelf.fetches(of: bytes) > 0 }
    let manager = device.manager
    let closing = Task {
      while !Task.isCancelled { await Task.yield() }
      await manager.close()
    }
    closing.cancel()
    await closing.value
    #expect(shelf.running == 0)
    // Each repeated request would have a number.
    #expect(await manager.waiters.count < 10)
  }
}

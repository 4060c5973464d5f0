import FerryNetworking
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryCaching

/// A door: holds all callers until it is opened, and reports waiting callers.
actor Door {
  private var isOpen = false
  private var waiting: [CheckedContinuation<Void, Never>] = []
  private var watching: [CheckedContinuation<Void, Never>] = []
  private(set) var count = 0

  func pass() async {
    count += 1
    for continuation in watching { continuation.resume() }
    watching = []
    if isOpen { return }
    await withCheckedContinuation { waiting.append($0) }
  }

  /// Returns when a caller has come.
  func someoneCame() async {
    if count > 0 { return }
    await withCheckedContinuation { watching.append($0) }
  }

  func open() {
    isOpen = true
    for continuation in waiting { continuation.resume() }
    waiting = []
  }
}

@Suite("Shared requests", .hangLimit)
struct SingleFlightTests {
  @Test("concurrent callers share one request and its answer, and the next one asks again")
  func shared() async throws {
    let (flights, door) = (SingleFlight<String, Int>(), Door())
    @Sendable func ask() async throws -> Int {
      try await flights.run("a") { () async throws(NetworkError) -> Int in
        await door.pass()
        return await door.count
      }
    }
    try await withThrowingTaskGroup { group in
      for _ in 0..<20 { group.addTask { try await ask() } }
      try await flights.joined("a", 20)
      await door.open()
      for try await answer in group { #expect(answer == 1) }
    }
    #expect(try await ask() == 2)
  }

  @Test("concurrent callers share a failure as well, and other keys are not affected")
  func failure() async throws {
    let flights = SingleFlight<String, Int>()
    let failure = await #expect(throws: NetworkError.self) {
      try await flights.run("a") { () async throws(NetworkError) -> Int in
        throw NetworkError(.timedOut, "late")
      }
    }
    #expect(failure?.kind == .timedOut)
    #expect(try await flights.run("b") { () async throws(NetworkError) -> Int in 1 } == 1)
  }

  @Test("a cancelled caller leaves at once, and the last one ends the request")
  func cancellation() async throws {
    let (flights, door) = (SingleFlight<String, Bool>(), Door())
    let ended = Door()
    func ask() -> Task<Bool, any Error> {
      Task {
        try await flights.run("a") { () async throws(NetworkError) -> Bool in
          await door.pass()
          if Task.isCancelled { await ended.pass() }
          return Task.isCancelled
        }
      }
    }
    let (one, other) = (ask(), ask())
    try await flights.joined("a", 2)
    one.cancel()
    await #expect(throws: NetworkError.self) { try await one.value }
    // The other still waits for the same request.
    #expect(flights.waiting("a") == 1)
    await door.someoneCame()
    other.cancel()
    await #expect(throws: NetworkError.self) { try await other.value }
    #expect(flights.waiting("a") == 0)
    await ended.open()
    await door.open()
    await ended.someoneCame()
  }

  @Test("a caller that is already cancelled does not wait")
  func cancelledBefore() async {
    let flights = SingleFlight<String, Int>()
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await flights.run("a") { () async throws(NetworkError) -> Int in 1 }
    }
    await #expect(throws: NetworkError.self) { try await task.value }
    #expect(flights.waiting("a") == 0)
  }
}

extension SingleFlight {
  /// Returns when so many wait for a key.
  func joined(_ key: Key, _ count: Int) async throws {
    try await eventually("\(count) callers of \(key)") { waiting(key) >= count }
  }
}

import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct SharedLookUpTests {
  /// A store whose answers are held until the test gives them.
  private final class HeldStore: Sendable {
    typealias Call = CheckedContinuation<Result<Int, StoreError>, Never>
    let calls = Mutex<[Call]>([])
    let started = Mutex(0)

    func lookUp() async throws(StoreError) -> Int {
      let answer = await withCheckedContinuation { (call: Call) in
        calls.withLock { $0.append(call) }
        started.withLock { $0 += 1 }
      }
      return try answer.get()
    }

    func answer(_ answer: Result<Int, StoreError>) {
      calls.withLock { $0.removeFirst() }.resume(returning: answer)
    }

    func hasStarted(_ count: Int) async throws {
      try await eventually("\(count) look-ups") { started.withLock { $0 } >= count }
    }
  }

  private let store = HeldStore()
  private let shared = SharedLookUp<Int>()

  private func ask() -> Task<Result<Int, StoreError>, Never> {
    Task {
      do throws(StoreError) {
        return .success(
          try await shared.value { () async throws(StoreError) in
            try await store.lookUp()
          })
      } catch {
        return .failure(error)
      }
    }
  }

  private func wait(for callers: Int) async throws {
    try await eventually("\(callers) callers") { shared.waitingCount >= callers }
  }

  @Test("callers that come while a look-up runs share the next one, and do not take its answer")
  func shares() async throws {
    let first = ask()
    try await store.hasStarted(1)
    let others = (0..<5).map { _ in ask() }
    try await wait(for: 5)
    store.answer(.success(1))
    #expect(await first.value == .success(1))
    try await store.hasStarted(2)
    store.answer(.success(2))
    for other in others { #expect(await other.value == .success(2)) }
    #expect(store.started.withLock { $0 } == 2)
  }

  @Test("a store that fails answers all that wait, and is asked again by the next")
  func fails() async throws {
    let first = ask()
    try await store.hasStarted(1)
    let others = (0..<3).map { _ in ask() }
    try await wait(for: 3)
    store.answer(.failure(.busy("much to do")))
    #expect(await first.value == .failure(.busy("much to do")))
    try await store.hasStarted(2)
    store.answer(.failure(.unavailable("gone")))
    for other in others { #expect(await other.value == .failure(.unavailable("gone"))) }
    let next = ask()
    try await store.hasStarted(3)
    store.answer(.success(3))
    #expect(await next.value == .success(3))
  }

  @Test("the error of a cancelled caller reaches no other")
  func cancelled() async throws {
    let first = ask()
    try await store.hasStarted(1)
    let (leading, other) = (ask(), ask())
    try await wait(for: 2)
    store.answer(.success(1))
    _ = await first.value
    try await store.hasStarted(2)
    leading.cancel()
    other.cancel()
    store.answer(.failure(.unavailable("cancelled")))
    try await store.hasStarted(3)
    store.answer(.success(3))
    let answers = await [leading.value, other.value]
    #expect(answers.contains(.success(3)))
    #expect(answers.contains(.failure(.unavailable("cancelled"))))
  }
}

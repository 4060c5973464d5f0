import Dispatch
import FerryPlatform
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerrySyncServer

/// The users of the embedded store take turns at the store's threads.
@Suite("Turns at the embedded store", .hangLimit)
struct StoreTurnsTests {
  /// The order in which users' work ran.
  private final class Order: Sendable {
    let users = Mutex([String]())
    func add(_ user: String) { users.withLock { $0.append(user) } }
  }

  /// Work that holds a thread until the test lets it go.
  private final class Holder: Sendable {
    private let gate = DispatchSemaphore(value: 0)
    private let started = Mutex(0)

    func hold() {
      started.withLock { $0 += 1 }
      gate.wait()
    }

    func hasStarted(_ count: Int) async throws {
      try await eventually("\(count) calls") { started.withLock { $0 } >= count }
    }

    func release(_ count: Int) { for _ in 0..<count { gate.signal() } }
  }

  private typealias Work = @Sendable (SQLiteStore, @escaping @Sendable () -> Void) async -> Void

  @Test(
    "a user that comes behind four hundred pieces of work of another is served next",
    arguments: [(isRead: true, threads: 3), (isRead: false, threads: 1)])
  func turns(isRead: Bool, threads: Int) async throws {
    let directory = try TemporaryDirectory()
    let store = try await SQLiteStore(directory: directory.url.path)
    let work: Work = { store, body in
      do throws(StoreError) {
        if isRead {
          try await store.read { _ in body() }
        } else {
          try await store.write { _ in body() }
        }
      } catch {
        Issue.record("\(error)")
      }
    }
    let (holder, order) = (Holder(), Order())
    var place: Int?
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { holder.release(500) }
      for _ in 0..<threads { group.addTask { await work(store) { holder.hold() } } }
      try await holder.hasStarted(threads)
      // A second write may wait at the thread itself.
      let ahead = isRead ? 0 : 1
      func add(_ user: String) {
        group.addTask {
          await WorkFlow(user: user).run {
            await work(store) {
              order.add(user)
              holder.hold()
            }
          }
        }
      }
      for _ in 0..<400 { add("ada") }
      try await eventually("400 calls") { store.waitingCount >= 400 - ahead }
      add("eve")
      try await eventually("401 calls") { store.waitingCount >= 401 - ahead }
      // Each piece of work holds a thread until it is released, however late the system runs it.
      holder.release(threads)
      for count in threads...threads + 3 where place == nil {
        try await eventually("\(count) calls to run") { order.users.withLock { $0.count } >= count }
        place = order.users.withLock { $0.firstIndex(of: "eve") }
        holder.release(1)
      }
    }
    #expect(place.map { $0 <= 3 } == true, "as many as run at once come before")
    await store.close()
  }
}

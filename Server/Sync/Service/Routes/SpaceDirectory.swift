import FerryProtocol
import Synchronization

/// The spaces named by requests, remembered for a few seconds. A space's id and epoch hardly ever
/// change, and looking them up would double the store's work for a small packet.
///
/// The heads in the answers are old. An unknown space is looked up each time.
final class SpaceDirectory: Sendable {
  /// The time for which a space is remembered.
  static let timeToLive = Duration.seconds(5)
  private static let countMax = 10_000

  private struct Entry {
    var space: SpaceSummary
    var expiry: Duration
  }

  private let store: any SyncStore
  private let clock: ServiceClock
  private let entries = Mutex([SpaceName: Entry]())

  init(store: any SyncStore, clock: ServiceClock) {
    self.store = store
    self.clock = clock
  }

  /// Returns the space, perhaps with an outdated head; `nil` if there is none.
  func find(_ name: SpaceName) async throws(StoreError) -> SpaceSummary? {
    let now = clock.uptime()
    let known = entries.withLock { entries in
      entries[name].flatMap { now < $0.expiry ? $0.space : nil }
    }
    if let known { return known }
    guard let space = try await store.space(named: name) else { return nil }
    entries.withLock { entries in
      if entries.count >= Self.countMax { entries = [:] }
      entries[name] = Entry(space: space, expiry: now + Self.timeToLive)
    }
    return space
  }
}

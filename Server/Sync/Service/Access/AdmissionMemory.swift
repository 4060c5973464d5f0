import FerryProtocol
import Synchronization

/// The recently admitted callers, so reading a content begins without a call to the store.
///
/// It decides nothing: a request is admitted or refused when it is answered. It only reports if the
/// content is worth reading, and the user whose turn a request takes.
final class AdmissionMemory: Sendable {
  struct Key: Hashable, Sendable {
    var authorization: String?
    var space: SpaceName
    var need: Role
  }

  /// The time for which an admission is remembered.
  static let timeToLive = Duration.seconds(5)
  /// The time for which a caller takes turns of its own. A revoked token only keeps its turn.
  static let callerTimeToLive = Duration.seconds(600)
  private static let countMax = 10_000

  private struct Entries<Key: Hashable> {
    private var entries: [Key: (principal: Principal, expiry: Duration)] = [:]

    func principal(of key: Key, now: Duration) -> Principal? {
      guard let entry = entries[key], now < entry.expiry else { return nil }
      return entry.principal
    }

    mutating func store(_ principal: Principal, for key: Key, until expiry: Duration) {
      if entries[key] == nil, entries.count >= AdmissionMemory.countMax { entries = [:] }
      entries[key] = (principal, expiry)
    }
  }

  private let clock: ServiceClock
  private let admissions = Mutex(Entries<Key>())
  /// By the `Authorization` header.
  private let callers = Mutex(Entries<String>())

  init(clock: ServiceClock) {
    self.clock = clock
  }

  /// Returns the admitted principal; `nil` if nothing is known.
  func principal(of key: Key) -> Principal? {
    let now = clock.uptime()
    return admissions.withLock { $0.principal(of: key, now: now) }
  }

  func store(_ principal: Principal, for key: Key) {
    let expiry = clock.uptime() + Self.timeToLive
    admissions.withLock { $0.store(principal, for: key, until: expiry) }
    store(principal, of: key.authorization)
  }

  /// Returns the principal of a recently admitted `Authorization` header; `nil` if nothing is known.
  func principal(of authorization: String?) -> Principal? {
    guard let authorization else { return nil }
    let now = clock.uptime()
    return callers.withLock { $0.principal(of: authorization, now: now) }
  }

  func store(_ principal: Principal, of authorization: String?) {
    guard let authorization else { return }
    let expiry = clock.uptime() + Self.callerTimeToLive
    callers.withLock { $0.store(principal, for: authorization, until: expiry) }
  }
}

import FerryProtocol
import Synchronization

/// The recently admitted callers, so reading a content begins without a call to the store.
///
/// It decides nothing: a request is admitted or refused when it is answered. It only reports if the
/// content is worth reading.
final class AdmissionMemory: Sendable {
  struct Key: Hashable, Sendable {
    var authorization: String?
    var space: SpaceName
    var need: Role
  }

  /// The time for which an admission is remembered.
  static let timeToLive = Duration.seconds(5)
  private static let countMax = 10_000

  private let clock: ServiceClock
  private let entries = Mutex([Key: (principal: Principal, expiry: Duration)]())

  init(clock: ServiceClock) {
    self.clock = clock
  }

  /// Returns the admitted principal; `nil` if nothing is known.
  func principal(of key: Key) -> Principal? {
    let now = clock.uptime()
    return entries.withLock { entries in
      guard let entry = entries[key], now < entry.expiry else { return nil }
      return entry.principal
    }
  }

  func store(_ principal: Principal, for key: Key) {
    let expiry = clock.uptime() + Self.timeToLive
    entries.withLock { entries in
      if entries.count >= Self.countMax { entries = [:] }
      entries[key] = (principal, expiry)
    }
  }
}

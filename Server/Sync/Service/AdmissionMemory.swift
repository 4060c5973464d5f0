import FerryProtocol
import Synchronization

/// Who was admitted a moment ago, so that reading a content begins without asking the store.
///
/// It decides nothing: a request is admitted, or refused, when it is answered. It only says that
/// its content is worth reading.
final class AdmissionMemory: Sendable {
  struct Key: Hashable, Sendable {
    var authorization: String?
    var space: SpaceName
    var need: Role
  }

  /// How long an admission is remembered.
  static let timeToLive = Duration.seconds(5)
  private static let countMax = 10_000

  private let clock: ServiceClock
  private let expiries = Mutex([Key: Duration]())

  init(clock: ServiceClock) {
    self.clock = clock
  }

  func knows(_ key: Key) -> Bool {
    let now = clock.uptime()
    return expiries.withLock { expiries in
      guard let expiry = expiries[key] else { return false }
      return now < expiry
    }
  }

  func keep(_ key: Key) {
    let expiry = clock.uptime() + Self.timeToLive
    expiries.withLock { expiries in
      if expiries.count >= Self.countMax { expiries = [:] }
      expiries[key] = expiry
    }
  }
}

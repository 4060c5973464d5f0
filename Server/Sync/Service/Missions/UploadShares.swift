import FerryProtocol
import Synchronization

/// The number and bytes of each space's finished uploads, named by no mission yet.
///
/// The store is asked for a space's sum once a minute at most. Between two questions, uploads
/// finished here are added. So a large publication is not counted again with each of its files.
/// Content published meanwhile counts until the next question.
final class UploadShares: Sendable {
  /// The time for which a sum is believed.
  static let timeToLive = Duration.seconds(60)
  private static let countMax = 10_000

  private struct Sum {
    var use: UnpublishedUse
    let expiry: Duration
  }

  private let clock: ServiceClock
  private let sums = Mutex([Int64: Sum]())

  init(clock: ServiceClock) { self.clock = clock }

  /// Returns the uploads of a space, by `ask` if they are not known.
  func use(
    in space: Int64, ask: () async throws(Problem) -> UnpublishedUse
  ) async throws(Problem) -> UnpublishedUse {
    let now = clock.uptime()
    let known = sums.withLock { sums in
      sums[space].flatMap { now < $0.expiry ? $0.use : nil }
    }
    if let known { return known }
    let use = try await ask()
    sums.withLock { sums in
      if sums.count >= Self.countMax { sums = [:] }
      sums[space] = Sum(use: use, expiry: now + Self.timeToLive)
    }
    return use
  }

  /// Counts an upload finished here.
  func add(_ bytes: Int64, in space: Int64) {
    sums.withLock { sums in
      sums[space]?.use.files += 1
      sums[space]?.use.bytes += bytes
    }
  }
}

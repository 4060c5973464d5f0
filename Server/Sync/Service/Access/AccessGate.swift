import FerryProtocol
import Synchronization

/// Decides over each request, asking the store about tokens as seldom as it can.
///
/// While no token was ever made, everybody who reaches the server may do everything. That state is
/// looked up again each second, so a token made by another process closes the gate by itself; it
/// never opens again.
package final class AccessGate: Sendable {
  /// How long "no token was ever made" is believed.
  static let openTimeToLive = Duration.seconds(1)

  private struct State {
    var isGuarded = false
    var openUntil: Duration?
    var cache = TokenCache()
  }

  private let store: any SyncStore
  private let clock: ServiceClock
  private let checksLoopback: Bool
  private let state = Mutex(State())

  /// - Parameter checksLoopback: Whether an open gate lets in only what names this machine and
  ///   does not come from a web page.
  package init(store: any SyncStore, clock: ServiceClock, checksLoopback: Bool) {
    self.store = store
    self.clock = clock
    self.checksLoopback = checksLoopback
  }

  /// Whether everybody is let in.
  package func isOpen() async throws(StoreError) -> Bool {
    let now = clock.uptime()
    let known: Bool? = state.withLock { state in
      if state.isGuarded { return false }
      if let until = state.openUntil, now < until { return true }
      return nil
    }
    if let known { return known }
    let hasTokens = try await store.hasEverHadTokens()
    state.withLock { state in
      if hasTokens { state.isGuarded = true }
      state.openUntil = now + Self.openTimeToLive
    }
    return !hasTokens
  }

  /// Returns the caller and its role in `space` if that is at least `need`; a `Problem` otherwise.
  package func admit(
    _ visitor: Visitor, to space: SpaceName, need: Role
  ) async throws(StoreError) -> Result<Admission, Problem> {
    if try await isOpen() {
      return loopbackFault(of: visitor).map { .failure($0) }
        ?? .success(Admission(.anonymous, .admin))
    }
    var known: StoredToken?
    if case .token(let token) = visitor.credential { known = try await lookUp(token) }
    return AccessRule.decide(visitor.credential, known: known, space: space, need: need)
  }

  /// Why an open gate turns a visitor away, or `nil`.
  func loopbackFault(of visitor: Visitor) -> Problem? {
    checksLoopback
      ? AccessRule.loopbackFault(host: visitor.host, origin: visitor.origin) : nil
  }

  func lookUp(_ token: AccessToken) async throws(StoreError) -> StoredToken? {
    let hash = token.hash
    let now = clock.uptime()
    if let kept = state.withLock({ $0.cache.lookUp(hash, now: now) }) { return kept }
    let found = try await store.token(hash: hash)
    state.withLock { $0.cache.keep(found, for: hash, now: now) }
    return found
  }
}

/// What a request says about who sends it.
package struct Visitor: Sendable, Equatable {
  package var credential: Credential
  /// The `Host` header.
  package var host: String?
  /// The `Origin` header, which browsers add.
  package var origin: String?

  package init(credential: Credential, host: String? = nil, origin: String? = nil) {
    self.credential = credential
    self.host = host
    self.origin = origin
  }
}

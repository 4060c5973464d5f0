import FerryProtocol
import Synchronization

/// The gate of all requests: it decides about each, and asks the store about tokens as seldom as
/// possible.
///
/// Before the first token exists, every caller may do everything. The gate asks the store about
/// tokens for each request, so a token from another process closes the gate at once. Simultaneous
/// requests share a look-up. The transaction of a packet asks as well, so packets need no separate
/// look-up. The gate never opens again.
package final class AccessGate: Sendable {
  private struct State {
    /// True if a token was ever made, by the last look-up; `nil` before the first.
    var hasHadTokens: Bool?
    var cache = IdentityCache()
    var memberships = MembershipCache()
    var uses: [TokenID: Int64] = [:]
    var limiter: RateLimiter
    var secrets = SecretFilter()
  }

  private let store: any SyncStore
  private let clock: ServiceClock
  private let policy: OpenPolicy
  private let verifier: SignedTokenVerifier?
  private let state: Mutex<State>
  private let hadTokens = SharedLookUp<Bool>()

  /// - Parameters:
  ///   - policy: Which requests are let in while no token was ever made.
  ///   - verifier: Checks JSON Web Tokens. A gate with one is never open.
  package init(
    store: any SyncStore, clock: ServiceClock, policy: OpenPolicy,
    limits: RateLimits = .standard, verifier: SignedTokenVerifier? = nil
  ) {
    self.store = store
    self.clock = clock
    self.policy = policy
    self.verifier = verifier
    state = Mutex(State(limiter: RateLimiter(limits)))
  }

  /// Creates a gate; while it is open, it admits requests with a name of this machine, or all.
  package convenience init(store: any SyncStore, clock: ServiceClock, checksLoopback: Bool) {
    self.init(store: store, clock: clock, policy: checksLoopback ? .loopback() : .trusted)
  }

  /// Returns whether every caller is let in.
  package func isOpen() async throws(StoreError) -> Bool {
    if verifier != nil || state.withLock({ $0.hasHadTokens == true }) { return false }
    let isGuarded = try await hadTokens.value { () async throws(StoreError) in
      try await store.hasEverHadTokens()
    }
    state.withLock { $0.hasHadTokens = $0.hasHadTokens == true || isGuarded }
    return !isGuarded
  }

  /// Returns the admission of a caller without a credential, if the server was open at the last
  /// look-up; otherwise `nil`, and ``admit(_:to:need:)`` decides. The caller checks again for
  /// tokens, in the transaction.
  package func admitAssumingOpen(
    _ visitor: Visitor, to space: SpaceName, need: Role
  ) -> Admission? {
    guard visitor.credential == .none, verifier == nil,
      state.withLock({ $0.hasHadTokens == false }), policy.fault(of: visitor) == nil,
      case .success(let admission) = AccessRule.decide(.anonymous, space: space, need: need)
    else { return nil }
    return Admission(
      admission.principal, admission.role, isServerAdmin: admission.isServerAdmin,
      assumesOpenServer: true)
  }

  /// Returns the caller and the role in `space` if it is at least `need`; a `Problem` otherwise.
  /// Long answers ask again from time to time: a token may expire or be revoked meanwhile.
  package func admit(
    _ visitor: Visitor, to space: SpaceName, need: Role
  ) async throws(StoreError) -> Result<Admission, Problem> {
    let identity: Identity
    switch try await recognise(visitor) {
    case .success(let found): identity = found
    case .failure(let problem): return .failure(problem)
    }
    // No membership is stronger.
    if identity.grants.role(in: space) == .admin {
      return AccessRule.decide(identity, space: space, need: need)
    }
    return AccessRule.decide(try await addingMemberships(to: identity), space: space, need: need)
  }

  /// Returns the identity behind a request with all permissions, those of memberships too.
  package func identify(
    _ visitor: Visitor
  ) async throws(StoreError) -> Result<Identity, Problem> {
    switch try await recognise(visitor) {
    case .success(let identity): .success(try await addingMemberships(to: identity))
    case .failure(let problem): .failure(problem)
    }
  }

  private func addingMemberships(to identity: Identity) async throws(StoreError) -> Identity {
    guard let user = identity.principal.user else { return identity }
    let (now, known, generation) = state.withLock { state in
      let now = clock.uptime()
      return (
        now, state.memberships.lookUp(user, now: now), state.memberships.generation
      )
    }
    var identity = identity
    if let known {
      identity.memberships = known
    } else {
      identity.memberships = try await store.roles(of: user)
      let found = identity.memberships
      state.withLock { $0.memberships.store(found, of: user, now: now, in: generation) }
    }
    return identity
  }

  /// Looks a user's memberships up again from now on: some have changed.
  func forgetMemberships(of user: UserID) { state.withLock { $0.memberships.forget(user) } }

  /// Returns the identity behind a credential, with the credential's own permissions.
  private func recognise(
    _ visitor: Visitor
  ) async throws(StoreError) -> Result<Identity, Problem> {
    if try await isOpen() {
      if let fault = policy.fault(of: visitor) { return .failure(fault) }
      if visitor.credential == .none { return .success(.anonymous) }
    }
    if let fault = AccessRule.fault(of: visitor.credential) { return .failure(fault) }
    let found: Result<Identity, Problem>
    switch visitor.credential {
    case .token(let token):
      found = try await lookUp(token, address: visitor.address)
    case .signed(let text): found = await verify(text, address: visitor.address)
    case .none, .unreadable: return .failure(.noCredential)
    }
    let now = clock.wall()
    return found.flatMap { $0.isExpired(at: now) ? .failure(AccessRule.expired) : .success($0) }
  }

  /// Reads the issuer's keys again, and looks up each credential again at its next use. If it
  /// throws, the last good keys stay.
  package func reload() async throws(KeySourceError) {
    state.withLock { $0.cache.forgetAll() }
    try await verifier?.reload()
  }

  // MARK: Credentials

  private func lookUp(
    _ token: AccessToken, address: String
  ) async throws(StoreError) -> Result<Identity, Problem> {
    let hash = token.hash
    switch remembered(hash, address: address) {
    case .known(let identity): return .success(identity)
    case .unknown: return AccessRule.recognise(nil, now: clock.wall())
    case .tooManyFailures(let wait):
      guard try await mayBeSecret(hash) else { return .failure(.tooManyFailures(wait)) }
    case .nothing: break
    }
    let known = try await store.token(hash: hash)
    let wall = clock.wall()
    let found = AccessRule.recognise(known, now: wall)
    cache(try? found.get(), for: hash)
    // An expired token is no guess.
    if known == nil {
      let now = clock.uptime()
      state.withLock { $0.limiter.recordFailure(at: address, now: now) }
    }
    if let known { state.withLock { $0.uses[known.token.id] = wall } }
    return found
  }

  private func verify(_ text: SignedText, address: String) async -> Result<Identity, Problem> {
    guard let verifier else {
      return .failure(
        Problem(.unauthorized, "this server takes no JSON Web Tokens (--jwt-issuer)"))
    }
    if verifier.keysChanged() { state.withLock { $0.cache.forgetAll() } }
    let hash = text.hash
    let now = clock.uptime()
    let (kept, wasKnown) = state.withLock {
      ($0.cache.lookUp(hash, now: now), $0.cache.wasKnown(hash))
    }
    if let kept {
      return kept.map { .success($0) }
        ?? .failure(.badSignedToken("the server refused it a moment ago"))
    }
    // Addresses with failures are not checked here: many users share the address of a proxy.
    let network = ListenAddress.network(of: address) ?? address
    switch await verifier.verify(text, at: network, wasKnown: wasKnown) {
    case .valid(let identity):
      cache(identity, for: hash, timeToLive: SignedTokenVerifier.timeToLive)
      return .success(identity)
    case .forged(let problem):
      cache(nil, for: hash)
      return .failure(problem)
    case .refused(let problem): return .failure(problem)
    }
  }

  private enum Remembered {
    case known(Identity)
    case unknown
    case tooManyFailures(Duration)
    case nothing
  }

  private func remembered(_ hash: [UInt8], address: String) -> Remembered {
    let now = clock.uptime()
    return state.withLock { state in
      if let kept = state.cache.lookUp(hash, now: now) {
        return kept.map { .known($0) } ?? .unknown
      }
      // A caller behind the same proxy may guess secrets. This must not lock out a good token. A
      // secret new to this gate is looked up in the filter of all secrets.
      if state.cache.wasKnown(hash) { return .nothing }
      return state.limiter.failureWait(at: address, now: now).map { .tooManyFailures($0) }
        ?? .nothing
    }
  }

  /// Returns `true` if a token from a guessing address is worth a look-up.
  private func mayBeSecret(_ hash: [UInt8]) async throws(StoreError) -> Bool {
    let now = clock.uptime()
    let (mayBe, reads) = state.withLock { state in
      let mayBe = state.secrets.mayContain(hash)
      return (mayBe, !mayBe && state.secrets.beginsReading(now: now))
    }
    guard reads else { return mayBe }
    let hashes = try await store.secretHashes()
    return state.withLock { state in
      state.secrets.replace(with: hashes)
      return state.secrets.mayContain(hash)
    }
  }

  private func cache(
    _ identity: Identity?, for hash: [UInt8], timeToLive: Duration = IdentityCache.timeToLive
  ) {
    let now = clock.uptime()
    state.withLock { $0.cache.store(identity, for: hash, now: now, timeToLive: timeToLive) }
  }

  // MARK: Rates

  /// Counts a request of a principal, in a space unless it is about none. Returns the exceeded
  /// limit if the request is one too many.
  func countRequest(of principal: Principal, in space: SpaceName?) -> RateExcess? {
    guard principal != .anonymous else { return nil }
    let now = clock.uptime()
    return state.withLock { $0.limiter.countRequest(of: principal, in: space, now: now) }
  }

  /// Counts bytes sent and received by a principal.
  func count(bytes: Int, of principal: Principal, in space: SpaceName?) {
    guard principal != .anonymous else { return }
    let now = clock.uptime()
    state.withLock { $0.limiter.count(bytes: bytes, of: principal, in: space, now: now) }
  }

  /// The checks of signatures since the start; `nil` without an issuer.
  var signatureCounts: SignatureChecks.Counts? { verifier?.counts }

  // MARK: Uses

  /// Writes down which tokens were used since the last call.
  package func storeUses() async throws(StoreError) {
    let uses = state.withLock { state in
      defer { state.uses = [:] }
      return state.uses
    }
    guard !uses.isEmpty else { return }
    try await store.storeTokenUses(uses)
  }
}

extension Problem {
  fileprivate static let noCredential = Problem(.unauthorized, "send a token of this space")

  static func tooManyFailures(_ wait: Duration) -> Problem {
    .rateLimited("your address, or all together, sent too many unknown tokens", wait)
  }

  /// Returns the problem of a rate limit; the detail contains the time to wait.
  static func rateLimited(_ reason: String, _ wait: Duration) -> Problem {
    Problem(.rateLimited, "\(reason); try again in \(wait.wholeSeconds) s")
  }

  static func badSignedToken(_ reason: String) -> Problem {
    Problem(.unauthorized, "the JSON Web Token is refused: \(reason)")
  }
}

extension Duration {
  /// Rounded up to seconds, 1 at least.
  var wholeSeconds: Int64 {
    let (seconds, rest) = components
    return max(1, rest > 0 ? seconds + 1 : seconds)
  }
}

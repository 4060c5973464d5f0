import FerryProtocol
import Synchronization

/// The reason why keys could not be read: for the log.
package struct KeySourceError: Error, Sendable, Equatable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// The source of an issuer's keys.
package struct KeySource: Sendable {
  /// True if shared secrets count: of a local file only.
  package var takesSecrets: Bool
  /// Reads the document.
  package var load: @Sendable () async throws(KeySourceError) -> [UInt8]

  package init(
    takesSecrets: Bool, load: @escaping @Sendable () async throws(KeySourceError) -> [UInt8]
  ) {
    self.takesSecrets = takesSecrets
    self.load = load
  }
}

/// A checker of JSON Web Tokens of one issuer, with up-to-date keys of the issuer.
///
/// The last good keys stay if newer ones cannot be read. After the set was read again, keys missing
/// in it count no longer.
package final class SignedTokenVerifier: Sendable {
  /// The time for which the result for a token is believed: keys may be withdrawn.
  static let timeToLive = KeyRefresh.ageMax

  private struct State {
    var keys: SignatureKeys?
    var document: [UInt8] = []
    var refresh = KeyRefresh()
    /// Loads begun so far.
    var loads = 0
    /// The number of the load whose keys are in force.
    var loadInForce = 0
    var fetch: Task<Void, Never>?
    var hasChanged = false
  }

  private let rules: ClaimRules
  private let source: KeySource
  private let clock: ServiceClock
  private let log: ServiceLog
  private let state = Mutex(State())
  private let checks: SignatureChecks

  package convenience init(
    _ rules: ClaimRules, keys source: KeySource, clock: ServiceClock, log: ServiceLog
  ) {
    self.init(rules, keys: source, clock: clock, log: log, checks: SignatureChecks())
  }

  init(
    _ rules: ClaimRules, keys source: KeySource, clock: ServiceClock, log: ServiceLog,
    checks: SignatureChecks
  ) {
    self.checks = checks
    self.rules = rules
    self.source = source
    self.clock = clock
    self.log = log
  }

  /// Reads the keys for the first time. Throws if they cannot be read now.
  package func start() async throws(KeySourceError) {
    try await load()
  }

  /// Reads the keys now, however recently they were read. The last good keys stay if it throws.
  package func reload() async throws(KeySourceError) { try await load() }

  /// The checks since the start.
  var counts: SignatureChecks.Counts { checks.counts }

  /// Returns whether other keys are in force since the last call.
  func keysChanged() -> Bool {
    state.withLock { state in
      defer { state.hasChanged = false }
      return state.hasChanged
    }
  }

  /// The result of a token.
  enum Answer: Sendable {
    case valid(Identity)
    /// The signature is wrong.
    case forged(Problem)
    /// The token costs no check, or could not be checked now.
    case refused(Problem)
  }

  /// Returns the identity behind a token, or the reason of the refusal. Only a token of the issuer
  /// with good claims gets a check of the signature.
  ///
  /// - Parameters:
  ///   - address: The sender's.
  ///   - wasKnown: Whether the token was good at the last check.
  func verify(_ text: SignedText, at address: String, wasKnown: Bool = false) async -> Answer {
    let token: SignedToken
    let identity: Identity
    do {
      token = try SignedToken(text)
      identity = try SignedClaims(token.payload, grantsClaim: rules.grantsClaim)
        .checked(by: rules, now: clock.wall()).get()
    } catch {
      checks.countUnchecked()
      let fault = (error as? SignedTokenFault).map { Problem.badSignedToken($0.reason) }
      return .refused(fault ?? error as? Problem ?? .badSignedToken("it cannot be read"))
    }
    let subject = identity.principal.id
    return await verdict(on: token) { key in
      [wasKnown ? "known" : "key:" + key, address, subject]
    }.answer(identity)
  }

  /// - Parameter path: The path of a check against a claimed key (``SignatureChecks``).
  private func verdict(
    on token: SignedToken, _ path: (_ key: String) -> [String]
  ) async -> SignatureKeys.Verdict? {
    let now = clock.uptime()
    let (keys, number, isDue) = state.withLock {
      ($0.keys, $0.loadInForce, $0.refresh.isDue(now: now))
    }
    let verdict = await check(token, keys, path)
    guard verdict == .unknownKey else {
      if isDue { beginRefresh(now: now) }
      return verdict
    }
    await refresh(now: now)
    let (newer, newNumber) = state.withLock { ($0.keys, $0.loadInForce) }
    guard newer != nil else { return .noKeys }
    return newNumber == number ? verdict : await check(token, newer, path)
  }

  private func check(
    _ token: SignedToken, _ keys: SignatureKeys?, _ path: (_ key: String) -> [String]
  ) async -> SignatureKeys.Verdict? {
    guard let keys, let key = keys.claimedKey(of: token) else {
      checks.countUnchecked()
      return .unknownKey
    }
    return await checks.run(path(key)) { keys.check(token) }
  }

  // MARK: Keys

  /// Waits for newer keys, if it is time for them.
  private func refresh(now: Duration) async { await beginRefresh(now: now)?.value }

  @discardableResult
  private func beginRefresh(now: Duration) -> Task<Void, Never>? {
    state.withLock { state -> Task<Void, Never>? in
      if let fetch = state.fetch { return fetch }
      guard state.refresh.isAllowed(now: now) else { return nil }
      state.refresh.attempt(now: now)
      let fetch = Task {
        do throws(KeySourceError) {
          try await self.load()
        } catch {
          self.log.write(.warning, "the issuer's keys cannot be read", detail: error.description)
        }
        self.state.withLock { $0.fetch = nil }
      }
      state.fetch = fetch
      return fetch
    }
  }

  private func load() async throws(KeySourceError) {
    let now = clock.uptime()
    let number = state.withLock { state in
      state.refresh.attempt(now: now)
      state.loads += 1
      return state.loads
    }
    let document = try await source.load()
    let keys: SignatureKeys
    do {
      keys = try SignatureKeys(document, takesSecrets: source.takesSecrets)
    } catch {
      throw KeySourceError("the key set is malformed: \(error)")
    }
    guard keys.count > 0 else {
      throw KeySourceError(
        "the key set has no key for RS256, ES256 or EdDSA"
          + (source.takesSecrets ? ", nor a secret of 32 bytes for HS256" : ""))
    }
    let arrived = clock.uptime()
    state.withLock { state in
      // A load that began later may have ended sooner, with newer keys.
      guard number > state.loadInForce else { return }
      state.loadInForce = number
      state.refresh.succeed(now: arrived)
      guard state.document != document else { return }
      (state.keys, state.document, state.hasChanged) = (keys, document, true)
    }
  }
}

extension SignatureKeys.Verdict? {
  /// Returns the answer about a token with an identity.
  fileprivate func answer(_ identity: Identity) -> SignedTokenVerifier.Answer {
    switch self {
    case .valid: .valid(identity)
    case .forged: .forged(.badSignedToken("its signature is wrong"))
    case .unknownKey:
      .refused(
        .badSignedToken("the issuer has no key with its identifier and type that signed it"))
    case .noKeys:
      .refused(
        Problem(.unavailable, "the keys of the tokens' issuer cannot be read at the moment"))
    case nil:
      .refused(
        Problem(.unavailable, "too many JSON Web Tokens wait for the check of their signatures"))
    }
  }
}

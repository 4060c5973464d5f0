import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct AccessGateTests {
  let store = ServiceStoreDouble(spaces: ["notes"])
  let time = ServiceClockDouble()
  let space = SpaceName.known("notes")

  func gate(checksLoopback: Bool = false) -> AccessGate {
    AccessGate(store: store, clock: time.clock, checksLoopback: checksLoopback)
  }

  func add(_ role: Role = .writer, expiresAt: Int64? = nil) async throws -> AccessToken {
    let token = AccessRuleTests.token()
    try await store.addToken(token, AccessGrants(space, role), expiresAt: expiresAt)
    return token
  }

  @Test("without any token, every visitor is an admin")
  func open() async throws {
    let result = try await gate().admit(Visitor(credential: .none), to: space, need: .admin)
    #expect(result == .success(Admission(.anonymous, .admin, isServerAdmin: true)))
  }

  @Test("a token made by another process closes the gate at once and permanently")
  func closes() async throws {
    let gate = gate()
    let visitor = Visitor(credential: .none)
    for _ in 0..<3 {
      #expect(
        try await gate.admit(visitor, to: space, need: .admin).map(\.role) == .success(.admin))
    }
    let secret = try await add()
    // Neither without a token nor with a wrong one, not for a moment.
    let stranger = Visitor(credential: .token(AccessRuleTests.token()))
    for visitor in [visitor, stranger] {
      #expect(
        try await gate.admit(visitor, to: space, need: .reader).problemCode == .unauthorized)
    }
    _ = try await store.removeToken(TokenID(hash: secret.hash), by: nil)
    time.advance(.seconds(60))
    #expect(try await !gate.isOpen())
    let lookUps = store.calls("hasEverHadTokens()")
    _ = try await gate.admit(visitor, to: space, need: .reader)
    #expect(store.calls("hasEverHadTokens()") == lookUps, "what is closed is not asked for")
  }

  @Test("a visitor is admitted without a look-up only to a gate that was open, under its policy")
  func assumesOpen() async throws {
    let gate = gate(checksLoopback: true)
    let visitor = Visitor(credential: .none)
    #expect(gate.admitAssumingOpen(visitor, to: space, need: .writer) == nil, "never looked up")
    #expect(try await gate.isOpen())
    let admission = try #require(gate.admitAssumingOpen(visitor, to: space, need: .writer))
    #expect(admission.principal == .anonymous && admission.assumesOpenServer)
    var stranger = Visitor(credential: .none)
    stranger.origin = "https://example.org"
    let known = Visitor(credential: .token(AccessRuleTests.token()))
    for visitor in [stranger, known] {
      #expect(gate.admitAssumingOpen(visitor, to: space, need: .writer) == nil)
    }
    _ = try await add()
    #expect(gate.admitAssumingOpen(visitor, to: space, need: .writer) != nil, "not looked up")
    #expect(try await !gate.isOpen())
    #expect(gate.admitAssumingOpen(visitor, to: space, need: .writer) == nil)
  }

  @Test("a credential that is sent to an open gate is checked")
  func wrongToken() async throws {
    let gate = gate()
    for header in ["Bearer \(AccessRuleTests.token().text)", "Bearer a.b.c", "Basic x", ""] {
      let visitor = Visitor(credential: Credential(authorization: header))
      #expect(
        try await gate.admit(visitor, to: space, need: .reader).problemCode == .unauthorized)
    }
    #expect(try await gate.isOpen())
  }

  @Test("if the store fails, every visitor is refused")
  func failsClosed() async throws {
    store.fail(.unavailable("away"))
    await #expect(throws: StoreError.unavailable("away")) {
      try await gate().admit(Visitor(credential: .none), to: space, need: .reader)
    }
  }

  @Test("a known token is looked up once in five seconds, and a revoked one is refused after them")
  func remembersKnown() async throws {
    let gate = gate()
    let token = try await add(.writer)
    let visitor = Visitor(credential: .token(token))
    for _ in 0..<10 {
      #expect(
        try await gate.admit(visitor, to: space, need: .reader)
          .map(\.role) == .success(.writer))
    }
    #expect(store.calls("token(hash:)") == 1)
    _ = try await store.removeToken(TokenID(hash: token.hash), by: nil)
    time.advance(IdentityCache.timeToLive)
    #expect(
      try await gate.admit(visitor, to: space, need: .reader).problemCode == .unauthorized)
  }

  @Test("after a reload, a revoked token is refused and a new one is admitted at once")
  func reloads() async throws {
    let gate = gate()
    let (token, stranger) = (try await add(.writer), AccessRuleTests.token())
    let visitors = [token, stranger].map { Visitor(credential: .token($0)) }
    for visitor in visitors { _ = try await gate.admit(visitor, to: space, need: .reader) }
    _ = try await store.removeToken(TokenID(hash: token.hash), by: nil)
    try await store.addToken(stranger, AccessGrants(space, .reader))
    #expect(try await gate.admit(visitors[0], to: space, need: .reader).problemCode == nil)
    #expect(
      try await gate.admit(visitors[1], to: space, need: .reader).problemCode == .unauthorized)
    try await gate.reload()
    #expect(
      try await gate.admit(visitors[0], to: space, need: .reader).problemCode == .unauthorized)
    #expect(try await gate.admit(visitors[1], to: space, need: .reader).problemCode == nil)
  }

  @Test("an unknown token is looked up once in two seconds")
  func remembersUnknown() async throws {
    let gate = gate()
    _ = try await add()
    let stranger = AccessRuleTests.token()
    let visitor = Visitor(credential: .token(stranger))
    for _ in 0..<10 {
      #expect(
        try await gate.admit(visitor, to: space, need: .reader).problemCode == .unauthorized)
    }
    #expect(store.calls("token(hash:)") == 1)
    try await store.addToken(stranger, AccessGrants(space, .reader))
    time.advance(IdentityCache.unknownTimeToLive)
    #expect(
      try await gate.admit(visitor, to: space, need: .reader).map(\.role) == .success(.reader))
  }

  @Test("a credential is refused after its expiry, even if it is cached")
  func expires() async throws {
    let gate = gate()
    let token = try await add(.reader, expiresAt: ServiceClockDouble.wall + 1_000)
    let visitor = Visitor(credential: .token(token))
    let admission = try await gate.admit(visitor, to: space, need: .reader).get()
    #expect(admission.expiry == ServiceClockDouble.wall + 1_000)
    time.advanceWall(milliseconds: 999)
    #expect(try await gate.admit(visitor, to: space, need: .reader).problemCode == nil)
    time.advanceWall(milliseconds: 1)
    #expect(
      try await gate.admit(visitor, to: space, need: .reader).problemCode == .unauthorized)
    #expect(store.calls("token(hash:)") == 1)
  }

  @Test("a rotated token is the same principal; its former secret expires after the grace period")
  func rotation() async throws {
    let gate = gate()
    let (first, second) = (try await add(.writer), AccessRuleTests.token())
    let id = TokenID(hash: first.hash)
    _ = try await store.rotateToken(
      id, hash: second.hash, graceEnd: ServiceClockDouble.wall + 1_000, by: nil)
    for token in [first, second] {
      let admission = try await gate.admit(
        Visitor(credential: .token(token)), to: space, need: .writer
      ).get()
      #expect(admission.principal.id == "token:\(id)")
    }
    time.advanceWall(milliseconds: 1_000)
    let old = Visitor(credential: .token(first))
    #expect(try await gate.admit(old, to: space, need: .reader).problemCode == .unauthorized)
    let new = Visitor(credential: .token(second))
    #expect(try await gate.admit(new, to: space, need: .reader).problemCode == nil)
  }

  @Test("tokens of one owner are one principal")
  func owners() async throws {
    let gate = gate()
    var principals: Set<Principal> = []
    for _ in 0..<2 {
      let token = AccessRuleTests.token()
      try await store.addToken(token, AccessGrants(space, .reader), owner: "ada")
      principals.insert(
        try await gate.identify(Visitor(credential: .token(token))).get().principal)
    }
    #expect(principals.map(\.id) == ["owner:ada"])
  }

  @Test("the last use of each token is noted on request, and only once")
  func uses() async throws {
    let gate = gate()
    let token = try await add()
    _ = try await gate.admit(Visitor(credential: .token(token)), to: space, need: .reader)
    #expect(try await store.tokens(after: nil, limit: 100).first?.lastUsedAt == nil)
    try await gate.storeUses()
    #expect(
      try await store.tokens(after: nil, limit: 100).first?.lastUsedAt == ServiceClockDouble.wall)
    try store.use { file in _ = try file.connection.run("UPDATE access_tokens SET used_at = 7") }
    try await gate.storeUses()
    #expect(try await store.tokens(after: nil, limit: 100).first?.lastUsedAt == 7)
  }

  @Test("tokens of a guessing address are not looked up, except for tokens that were valid")
  func guesses() async throws {
    let gate = gate()
    let good = try await add()
    func admit(_ token: AccessToken, at address: String) async throws -> ProblemCode? {
      var visitor = Visitor(credential: .token(token))
      visitor.address = address
      return try await gate.admit(visitor, to: space, need: .reader).problemCode
    }
    #expect(try await admit(good, at: "10.0.0.1") == nil)
    for _ in 0..<RateLimits.standard.failures {
      #expect(try await admit(AccessRuleTests.token(), at: "10.0.0.1") == .unauthorized)
    }
    let lookUps = store.calls("token(hash:)")
    for _ in 0..<100 {
      #expect(try await admit(AccessRuleTests.token(), at: "10.0.0.1") == .rateLimited)
    }
    #expect(store.calls("token(hash:)") == lookUps)
    #expect(try await admit(AccessRuleTests.token(), at: "10.0.0.2") == .unauthorized)
    time.advance(IdentityCache.timeToLive)
    #expect(try await admit(good, at: "10.0.0.1") == nil, "it was good before")
  }

  @Test("a token that was never used is admitted while its address guesses")
  func guessesBesideMembers() async throws {
    let gate = gate()
    func admit(_ token: AccessToken) async throws -> ProblemCode? {
      var visitor = Visitor(credential: .token(token))
      visitor.address = "10.0.0.1"
      return try await gate.admit(visitor, to: space, need: .reader).problemCode
    }
    let early = try await add()
    for _ in 0..<(RateLimits.standard.failures + 100) {
      _ = try await admit(AccessRuleTests.token())
    }
    #expect(try await admit(early) == nil, "made before the guesses, and never used")
    #expect(store.calls("secretHashes()") == 1, "guesses do not reach the store")
    let late = try await add()
    #expect(try await admit(late) == .rateLimited)
    time.advance(SecretFilter.ageMax)
    #expect(try await admit(late) == nil)
  }

  @Test("guesses from many addresses are bounded together, and tokens that exist are admitted")
  func guessesOfMany() async throws {
    let gate = gate()
    func admit(_ token: AccessToken, at number: Int) async throws -> ProblemCode? {
      var visitor = Visitor(credential: .token(token))
      visitor.address = "10.\(number >> 16).\(number >> 8 & 255).\(number & 255)"
      return try await gate.admit(visitor, to: space, need: .reader).problemCode
    }
    let early = try await add()
    for number in 0..<3_000 { _ = try await admit(AccessRuleTests.token(), at: number) }
    #expect(store.calls("token(hash:)") <= 1_001, "all at one moment")
    #expect(try await admit(early, at: 5_000) == nil)
    time.advance(.seconds(1))
    #expect(try await admit(AccessRuleTests.token(), at: 5_001) == .unauthorized)
  }

  @Test("bad credentials push no good one out of the cache")
  func goodOnesStay() {
    var cache = IdentityCache(countMax: 100)
    for number in 0..<100 {
      cache.store(Identity.anonymous, for: Array("good \(number)".utf8), now: .zero)
    }
    for number in 0..<10_000 {
      cache.store(nil, for: Array("\(number)".utf8), now: .zero)
      #expect(cache.count <= 300)
    }
    for number in 0..<100 {
      #expect(cache.lookUp(Array("good \(number)".utf8), now: .zero) == .some(.anonymous))
    }
    for number in 100..<1_000 {
      cache.store(Identity.anonymous, for: Array("good \(number)".utf8), now: .zero)
      #expect(cache.count <= 300)
    }
    #expect(cache.wasKnown(Array("good 950".utf8)) && !cache.wasKnown(Array("good 1".utf8)))
  }

  @Test("the cache of credentials is bounded")
  func cacheIsBounded() {
    var cache = IdentityCache(countMax: 100)
    for number in 0..<1_000 {
      cache.store(nil, for: Array("\(number)".utf8), now: .milliseconds(number))
      #expect(cache.count <= 100)
    }
    #expect(cache.lookUp(Array("999".utf8), now: .seconds(1)) == .some(nil))
    #expect(cache.lookUp(Array("0".utf8), now: .seconds(1)) == nil)
  }

  @Test("a valid credential stays known after the cache is emptied")
  func goodStaysKnown() {
    var cache = IdentityCache()
    cache.store(Identity.anonymous, for: [1], now: .zero)
    cache.store(nil, for: [2], now: .zero)
    cache.forgetAll()
    #expect(cache.lookUp([1], now: .zero) == nil && cache.wasKnown([1]))
    #expect(cache.lookUp([2], now: .zero) == nil && !cache.wasKnown([2]))
  }

  @Test("an open loopback gate checks only the name of the host; with tokens any name is accepted")
  func loopbackOnly() async throws {
    let gate = gate(checksLoopback: true)
    let foreign = Visitor(credential: .none, host: "evil.example")
    #expect(try await gate.admit(foreign, to: space, need: .reader).problemCode == .forbidden)
    let local = Visitor(credential: .none, host: "127.0.0.1:8080")
    #expect(try await gate.admit(local, to: space, need: .admin).map(\.role) == .success(.admin))
    let token = try await add(.reader)
    let proxied = Visitor(credential: .token(token), host: "ferry.example", origin: "https://a")
    #expect(
      try await gate.admit(proxied, to: space, need: .reader).map(\.role) == .success(.reader))
  }
}

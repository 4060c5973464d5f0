import FerryProtocol
import TestSupport
import Testing

@testable import SyncServer

@Suite(.hangLimit)
struct AccessGateTests {
  let store = ServiceStoreDouble(spaces: ["notes"])
  let time = ServiceClockDouble()
  let space = SpaceName.known("notes")

  func gate(checksLoopback: Bool = false) -> AccessGate {
    AccessGate(store: store, clock: time.clock, checksLoopback: checksLoopback)
  }

  func add(_ role: Role = .writer) async throws -> AccessToken {
    let token = AccessRuleTests.token()
    try await store.addToken(AccessRuleTests.stored(token, space, role))
    return token
  }

  @Test("while no token was ever made everybody is an admin")
  func open() async throws {
    let result = try await gate().admit(Visitor(credential: .none), to: space, need: .admin)
    #expect(result.map(\.role) == .success(.admin))
  }

  @Test("a token made by another process closes the gate within a second, and for good")
  func closes() async throws {
    let gate = gate()
    #expect(try await gate.isOpen())
    let token = try await add()
    #expect(try await gate.isOpen(), "the answer is believed for a moment")
    time.advance(.seconds(1))
    #expect(try await !gate.isOpen())
    let visitor = Visitor(credential: .none)
    #expect(
      try await gate.admit(visitor, to: space, need: .reader).problemCode == .unauthorized)
    _ = try await store.removeToken(hash: token.hash)
    time.advance(.seconds(60))
    #expect(try await !gate.isOpen())
  }

  @Test("a store that fails lets nobody in")
  func failsClosed() async throws {
    store.fail(.unavailable("away"))
    await #expect(throws: StoreError.unavailable("away")) {
      try await gate().admit(Visitor(credential: .none), to: space, need: .reader)
    }
  }

  @Test("a known token is looked up once in five seconds, and a revoked one is let in no longer")
  func remembersKnown() async throws {
    let gate = gate()
    let token = try await add(.writer)
    let visitor = Visitor(credential: .token(token))
    for _ in 0..<10 {
      #expect(
        try await gate.admit(visitor, to: space, need: .reader)
          .map(\.role) == .success(.writer))
    }
    #expect(store.state.withLock { $0.tokenLookUps } == 1)
    _ = try await store.removeToken(hash: token.hash)
    time.advance(TokenCache.timeToLive)
    #expect(
      try await gate.admit(visitor, to: space, need: .reader).problemCode == .unauthorized)
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
    #expect(store.state.withLock { $0.tokenLookUps } == 1)
    try await store.addToken(AccessRuleTests.stored(stranger, space, .reader))
    time.advance(TokenCache.unknownTimeToLive)
    #expect(
      try await gate.admit(visitor, to: space, need: .reader).map(\.role) == .success(.reader))
  }

  @Test("what is remembered of tokens is bounded")
  func cacheIsBounded() {
    var cache = TokenCache(countMax: 100)
    for number in 0..<1_000 {
      cache.keep(nil, for: Array("\(number)".utf8), now: .milliseconds(number))
      #expect(cache.count <= 100)
    }
    #expect(cache.lookUp(Array("999".utf8), now: .seconds(1)) == .some(nil))
    #expect(cache.lookUp(Array("0".utf8), now: .seconds(1)) == nil)
  }

  @Test("an open gate for this machine only asks for its name; with tokens any name will do")
  func loopbackOnly() async throws {
    let gate = gate(checksLoopback: true)
    let foreign = Visitor(credential: .none, host: "evil.example")
    #expect(try await gate.admit(foreign, to: space, need: .reader).problemCode == .forbidden)
    let local = Visitor(credential: .none, host: "127.0.0.1:8080")
    #expect(try await gate.admit(local, to: space, need: .admin).map(\.role) == .success(.admin))
    let token = try await add(.reader)
    time.advance(.seconds(1))
    let proxied = Visitor(credential: .token(token), host: "ferry.example", origin: "https://a")
    #expect(
      try await gate.admit(proxied, to: space, need: .reader).map(\.role) == .success(.reader))
  }
}

import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// Tokens made by a principal are separate principals, but count to the maker's account.
@Suite("Accounts", .hangLimit)
struct AccountTests {
  private static func principal(_ text: String) throws -> Principal {
    try #require(Principal(text))
  }

  private static func admin(of spaces: String, in store: ServiceStoreDouble, owner: String? = nil)
    async throws -> AccessToken
  {
    let secret = AccessRuleTests.token()
    let pattern = try #require(SpacePattern(spaces))
    try await store.addToken(secret, try #require(AccessGrants([pattern: .admin])), owner: owner)
    return secret
  }

  private static func create(
    _ json: String, by token: AccessToken, _ fixture: ServiceFixture
  ) async throws -> (secret: AccessToken, members: [String: Any]) {
    let answer = await fixture.send("POST", "/v1/tokens", token: token, body: Array(json.utf8))
    let members = try #require(
      try JSONSerialization.jsonObject(with: Data(answer.bytes)) as? [String: Any])
    let text = try #require(members["token"] as? String, "\(answer.text)")
    return (try #require(AccessToken(text)), members)
  }

  @Test(
    "an account is the part behind the token that a principal made",
    arguments: [
      ("token:0123456789abcdef", "token:0123456789abcdef"),
      ("token:0123456789abcdef@token:fedcba9876543210", "token:fedcba9876543210"),
      ("token:0123456789abcdef@owner:Ada \u{600}@x", "owner:Ada \u{600}@x"),
      ("token:0123456789abcdef@jwt:https://id.example#7", "jwt:https://id.example#7"),
      ("token:0123456789abcdef@", "token:0123456789abcdef@"),
      ("owner:0123456789abcdef@owner:eve", "owner:0123456789abcdef@owner:eve"),
      ("jwt:token:0123456789abcdef@x#y", "jwt:token:0123456789abcdef@x#y"),
      ("anonymous", "anonymous"),
    ])
  func accounts(_ principal: String, _ account: String) throws {
    #expect(try Self.principal(principal).account == Self.principal(account))
  }

  @Test("a longest account has room behind the token that it made")
  func longest() throws {
    let account = try Self.principal("jwt:" + String(repeating: "x", count: 508))
    let token = StoredToken(
      id: TokenID(hash: [UInt8](repeating: 1, count: 32)), account: account,
      grants: AccessGrants(everywhere: .reader), createdAt: 0)
    #expect(Principal(token).account == account)
    #expect(Principal(Principal(token).id) == Principal(token))
  }

  @Test("tokens count to the account of the first maker, however often tokens made tokens")
  func makers() async throws {
    let fixture = ServiceFixture()
    let root = try await Self.admin(of: "*", in: fixture.store)
    let admin = try await Self.admin(of: "notes", in: fixture.store, owner: "ada")
    let first = try await Self.create(#"{"spaces":{"notes":"admin"}}"#, by: admin, fixture)
    let second = try await Self.create(#"{"spaces":{"notes":"writer"}}"#, by: first.secret, fixture)
    #expect(first.members["account"] as? String == "owner:ada")
    #expect(second.members["account"] as? String == "owner:ada")
    #expect(second.members["owner"] is NSNull, "ada's devices are not the new token's")
    let id = try #require(first.members["id"] as? String)
    #expect(await fixture.send("DELETE", "/v1/tokens/\(id)", token: admin).status == 204)
    let stored = try #require(await fixture.store.token(hash: second.secret.hash)).token
    #expect(Principal(stored).account == (try Self.principal("owner:ada")))
    let own = try await Self.create(#"{"spaces":{"notes":"writer"}}"#, by: root, fixture)
    let ownID = try #require(own.members["id"] as? String)
    #expect(own.members["account"] as? String == "token:\(ownID)", "an admin of the server's")
    let log = try await fixture.store.audit(AuditQuery())
    let maker = try #require(await fixture.store.token(hash: admin.hash)).token
    #expect(log.first?.principal == Principal(maker).id)
    #expect(log.dropFirst().first?.principal == "token:\(id)@owner:ada")
  }

  @Test("thirty tokens of one admin pass no more requests than one")
  func rate() async throws {
    let store = ServiceStoreDouble(spaces: ["notes"])
    let time = ServiceClockDouble()
    let gate = AccessGate(
      store: store, clock: time.clock, policy: .trusted,
      limits: RateLimits(requests: 10, requestBurst: 54, bytes: 0, failures: 60))
    let fixture = ServiceFixture(store: store, gate: gate, clock: time)
    let admin = try await Self.admin(of: "notes", in: store)
    var tokens: [AccessToken] = []
    for _ in 0..<30 {
      tokens.append(try await Self.create(#"{"spaces":{"notes":"reader"}}"#, by: admin, fixture).0)
    }
    var passed = 0
    for number in 0..<400 {
      let answer = await fixture.send("GET", "/v1/spaces/notes", token: tokens[number % 30])
      if answer.status == 200 { passed += 1 }
    }
    #expect(passed == 24)
  }

  @Test("tokens that one principal made are bounded, and revoked ones make room")
  func tokens() async throws {
    var quotas = Quotas.standard
    quotas.tokens = 2
    let fixture = ServiceFixture(quotas: quotas)
    let admin = try await Self.admin(of: "notes", in: fixture.store)
    let first = try await Self.create(#"{"spaces":{"notes":"admin"}}"#, by: admin, fixture)
    _ = try await Self.create(#"{"spaces":{"notes":"reader"}}"#, by: first.secret, fixture)
    let body = Array(#"{"spaces":{"notes":"reader"}}"#.utf8)
    let third = await fixture.send("POST", "/v1/tokens", token: admin, body: body)
    #expect(third.problem?.code == .storageQuota)
    let id = try #require(first.members["id"] as? String)
    #expect(await fixture.send("DELETE", "/v1/tokens/\(id)", token: admin).status == 204)
    #expect(await fixture.send("POST", "/v1/tokens", token: admin, body: body).status == 201)
  }

  @Test("streams count to the account")
  func streams() async throws {
    var quotas = Quotas.standard
    quotas.streams = 1
    let fixture = ServiceFixture(quotas: quotas)
    let admin = try await Self.admin(of: "notes", in: fixture.store)
    let made = try await Self.create(#"{"spaces":{"notes":"reader"}}"#, by: admin, fixture).secret
    let path = "/v1/spaces/notes/events"
    #expect(await fixture.send("GET", path, token: admin).status == 200)
    #expect(await fixture.send("GET", path, token: made).problem?.code == .streamQuota)
  }
}

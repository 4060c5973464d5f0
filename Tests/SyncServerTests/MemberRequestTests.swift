import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("Members and invitations over HTTP", .hangLimit)
struct MemberRequestTests {
  private let fixture: ServiceFixture
  private let limits = Limits.standard

  init() {
    let (store, clock) = (ServiceStoreDouble(spaces: ["notes"]), ServiceClockDouble())
    fixture = ServiceFixture(
      store: store, gate: AccessGate(store: store, clock: clock.clock, checksLoopback: false),
      clock: clock, userSpaces: SpacePattern("l*"))
  }

  /// Adds a user who has a token without spaces.
  private func user(_ name: String) async throws -> AccessToken {
    let secret = AccessRuleTests.token()
    try await fixture.store.addToken(secret, .none, owner: name)
    return secret
  }

  private func send(
    _ method: String, _ path: String, _ body: String = "", by token: AccessToken
  ) async -> HTTPResponse {
    await fixture.send(method, "/v1/\(path)", token: token, body: Array(body.utf8))
  }

  private func create(_ space: String, by token: AccessToken) async throws {
    let answer = await send("POST", "spaces", #"{"space":"\#(space)","title":"T"}"#, by: token)
    try #require(answer.status == 201, "\(answer.text)")
  }

  private func invite(
    _ body: String, to space: String, by token: AccessToken
  ) async throws -> Invitation {
    let answer = await send("POST", "spaces/\(space)/invitations", body, by: token)
    try #require(answer.status == 201, "\(answer.text)")
    return try Invitation(decoding: answer.bytes, limits: limits)
  }

  private func accept(_ code: String?, by token: AccessToken) async throws -> HTTPResponse {
    let code = try #require(code)
    return await send("POST", "invitations", #"{"code":"\#(code)"}"#, by: token)
  }

  private func spaces(of token: AccessToken) async throws -> [String: Role] {
    let answer = await send("GET", "user", by: token)
    let own = try OwnSpaces(decoding: answer.bytes, limits: limits)
    return Dictionary(uniqueKeysWithValues: own.spaces.map { ($0.space.value, $0.role) })
  }

  @Test("a user makes a space and invites another one, who then has the role in this space only")
  func invitation() async throws {
    let (ada, bea) = (try await user("ada"), try await user("bea"))
    try await create("list", by: ada)
    #expect(try await spaces(of: ada) == ["list": .admin])
    let denied = await send("GET", "spaces/list", by: bea)
    #expect(denied.problem?.code == .forbidden)
    #expect(denied.problem?.detail.contains("you are not a member of space list") == true)
    let invitation = try await invite(#"{"role":"writer"}"#, to: "list", by: ada)
    #expect(invitation.expiresAt - invitation.createdAt == 7 * 86_400_000)
    let answer = try await accept(invitation.code, by: bea)
    let membership = try Membership(decoding: answer.bytes, limits: limits)
    #expect(membership.space.value == "list" && membership.title == "T")
    #expect(membership.role == .writer && membership.maker == "owner:ada")
    #expect(await send("GET", "spaces/list", by: bea).status == 200)
    let packet = String(decoding: Packet.serviceSample(1).encoded(), as: UTF8.self)
    #expect(await send("POST", "spaces/list/packets", packet, by: bea).status == 200)
    #expect(await send("GET", "spaces/list/invitations", by: bea).problem?.code == .forbidden)
    #expect(await send("GET", "spaces/notes", by: bea).problem?.code == .forbidden)
    let members = try MembersAnswer(
      decoding: await send("GET", "spaces/list/members", by: bea).bytes, limits: limits)
    #expect(members.members.map(\.user.name) == ["ada", "bea"])
  }

  @Test("the end of a membership counts at once on the same server, and a user can leave")
  func ends() async throws {
    let (ada, bea) = (try await user("ada"), try await user("bea"))
    try await create("list", by: ada)
    let invitation = try await invite(#"{"role":"reader"}"#, to: "list", by: ada)
    _ = try await accept(invitation.code, by: bea)
    #expect(await send("GET", "spaces/list", by: bea).status == 200)
    let removal = #"{"user":"owner:bea","role":null}"#
    #expect(await send("PUT", "spaces/list/members", removal, by: bea).status == 403)
    #expect(await send("PUT", "spaces/list/members", removal, by: ada).status == 204)
    #expect(await send("GET", "spaces/list", by: bea).status == 403)
    // The user knows the code, so it has ended.
    #expect(try await accept(invitation.code, by: bea).problem?.code == .unknownInvitation)
    let other = try await invite(#"{"role":"reader"}"#, to: "list", by: ada)
    _ = try await accept(other.code, by: bea)
    let leaving = await send("DELETE", "spaces/list/membership", by: bea)
    #expect(leaving.status == 204)
    #expect(try await spaces(of: bea).isEmpty)
    // Repeated, as after a lost answer.
    #expect(await send("DELETE", "spaces/list/membership", by: bea).status == 204)
    #expect(await send("DELETE", "spaces/none/membership", by: bea).status == 204)
    // The space keeps an admin only as long as others are in it.
    #expect(await send("DELETE", "spaces/list/membership", by: ada).status == 204)
  }

  @Test("a change by another server counts after five seconds")
  func otherServer() async throws {
    let bea = try await user("bea")
    #expect(await send("GET", "spaces/notes", by: bea).status == 403)
    let space = try #require(try await fixture.store.space(named: .known("notes")))
    let beaID = try #require(UserID(owner: "bea"))
    _ = try await fixture.store.setRole(
      .reader, of: beaID, in: space, by: MemberCaller(.anonymous, isByCredential: true),
      at: ServiceClockDouble.wall)
    #expect(await send("GET", "spaces/notes", by: bea).status == 403)
    fixture.clock.advance(.seconds(5))
    #expect(await send("GET", "spaces/notes", by: bea).status == 200)
  }

  @Test("codes are read as people type them, and all others have one answer")
  func codes() async throws {
    let (ada, bea) = (try await user("ada"), try await user("bea"))
    try await create("list", by: ada)
    let once = try await invite(#"{"role":"reader","once":true}"#, to: "list", by: ada)
    let short = try await invite(#"{"role":"reader","expiresIn":1}"#, to: "list", by: ada)
    let revoked = try await invite(#"{"role":"reader"}"#, to: "list", by: ada)
    #expect(
      await send("DELETE", "spaces/list/invitations/\(revoked.id)", by: ada).status == 204)
    fixture.clock.advanceWall(milliseconds: 1_000)
    let listed = try InvitationsAnswer(
      decoding: await send("GET", "spaces/list/invitations", by: ada).bytes, limits: limits)
    #expect(listed.invitations.map(\.id) == [once.id])
    #expect(listed.invitations.map(\.code) == [nil])
    let typed = try #require(once.code).lowercased().replacing("-", with: " ")
    #expect(try await accept(typed, by: bea).status == 200)
    let cid = try await user("cid")
    for code in [once.code, short.code, revoked.code, "", "x", String(repeating: "0", count: 25)] {
      #expect(try await accept(code, by: cid).problem?.code == .unknownInvitation, "\(code ?? "")")
    }
    #expect(try await spaces(of: cid).isEmpty)
  }

  @Test("a token without an owner is no user, and only users create spaces of their own")
  func noUser() async throws {
    let token = try await fixture.token(.admin)
    let body = #"{"space":"list"}"#
    #expect(await send("POST", "spaces", body, by: token).problem?.code == .forbidden)
    #expect(try await accept("x", by: token).problem?.code == .forbidden)
    #expect(await send("DELETE", "spaces/notes/membership", by: token).status == 403)
    let answer = await send("GET", "user", by: token)
    #expect(answer.text == #"{"user":null,"spaces":[]}"#)
    // It invites nevertheless.
    let invitation = try await invite(#"{"role":"admin"}"#, to: "notes", by: token)
    let ada = try await user("ada")
    #expect(try await accept(invitation.code, by: ada).status == 200)
    #expect(await send("PUT", "spaces/notes", by: ada).status == 200)
    #expect(await send("POST", "spaces", #"{"space":"notes"}"#, by: ada).status == 403)
    // Users create spaces with the permitted names only.
    #expect(await send("POST", "spaces", #"{"space":"team-1"}"#, by: ada).status == 403)
  }

  @Test("an admin by membership administers neither tokens nor the server")
  func membersAreNoAdministrators() async throws {
    let (ada, bea) = (try await user("ada"), try await user("bea"))
    try await create("list", by: ada)
    for path in ["tokens", "audit", "spaces"] {
      #expect(await send("GET", path, by: ada).problem?.code == .forbidden, "\(path)")
    }
    let known = try #require(try await fixture.store.token(hash: bea.hash)).token
    #expect(await send("DELETE", "tokens/\(known.id)", by: ada).status == 403)
    // An admin by a token sees no tokens of users either.
    let notes = try await fixture.token(.admin)
    #expect(await send("DELETE", "tokens/\(known.id)", by: notes).status == 404)
    #expect(!(await send("GET", "tokens", by: notes).text.contains("bea")))
    // Nobody becomes a member without consent.
    let addition = #"{"user":"owner:bea","role":"reader"}"#
    #expect(await send("PUT", "spaces/list/members", addition, by: ada).status == 403)
    #expect(await send("PUT", "spaces/notes/members", addition, by: notes).status == 204)
  }

  @Test("the stronger role counts, also if the weaker one is enough for the request")
  func stronger() async throws {
    let secret = AccessRuleTests.token()
    try await fixture.store.addToken(secret, AccessGrants(.known("notes"), .reader), owner: "ada")
    let admin = try await fixture.token(.admin)
    let role = #"{"user":"owner:ada","role":"writer"}"#
    #expect(await send("PUT", "spaces/notes/members", role, by: admin).status == 204)
    let answer = await send("GET", "spaces/notes", by: secret)
    #expect(try SpaceInfo(decoding: answer.bytes).role == .writer)
  }

  @Test("an open server has no members")
  func open() async throws {
    let body = Array(#"{"role":"admin"}"#.utf8)
    let headers: HTTPHeaders = ["Host": "127.0.0.1", "Content-Type": "application/json"]
    let invited = await fixture.send(
      "POST", "/v1/spaces/notes/invitations", headers: headers, body: body)
    #expect(invited.problem?.detail.contains("an open server has no members") == true)
    let member = Array(#"{"user":"owner:ada","role":"admin"}"#.utf8)
    let set = await fixture.send(
      "PUT", "/v1/spaces/notes/members", headers: headers, body: member)
    #expect(set.problem?.code == .forbidden)
  }

  @Test("a repeated acceptance and a repeated creation have the same answer")
  func repeated() async throws {
    let (ada, bea) = (try await user("ada"), try await user("bea"))
    try await create("list", by: ada)
    try await create("list", by: ada)
    #expect(await send("POST", "spaces", #"{"space":"list"}"#, by: bea).status == 403)
    let once = try await invite(#"{"role":"reader","once":true}"#, to: "list", by: ada)
    let first = try await accept(once.code, by: bea)
    let second = try await accept(once.code, by: bea)
    #expect(first.status == 200 && first.bytes == second.bytes)
    #expect(await send("DELETE", "spaces/list/membership", by: bea).status == 204)
    #expect(try await accept(once.code, by: bea).problem?.code == .unknownInvitation)
  }

  @Test("without the option, only admins of the name create spaces")
  func admins() async throws {
    let fixture = ServiceFixture()
    let ada = AccessRuleTests.token()
    try await fixture.store.addToken(ada, .none, owner: "ada")
    let root = AccessRuleTests.token()
    try await fixture.store.addToken(root, AccessGrants(everywhere: .admin), owner: "root")
    let body = Array(#"{"space":"new"}"#.utf8)
    let denied = await fixture.send("POST", "/v1/spaces", token: ada, body: body)
    #expect(denied.problem?.code == .forbidden)
    #expect(await fixture.send("POST", "/v1/spaces", token: root, body: body).status == 201)
  }

  @Test(
    "malformed requests about members are refused",
    arguments: [
      ("POST", "spaces", #"{"title":"no name"}"#), ("POST", "spaces", #"{"space":"a b"}"#),
      ("POST", "spaces", #"{"space":"x","title":"a\u202eb"}"#),
      ("PUT", "spaces/list/members", #"{"user":"owner:bea"}"#),
      ("PUT", "spaces/list/members", #"{"user":"bea","role":"reader"}"#),
      ("PUT", "spaces/list/members", #"{"user":"owner:","role":"reader"}"#),
      ("PUT", "spaces/list/members", #"{"user":"token:0123456789abcdef","role":"reader"}"#),
      ("PUT", "spaces/list/members", #"{"user":"owner:bea","role":"owner"}"#),
      ("POST", "spaces/list/invitations", #"{"role":"reader","expiresIn":0}"#),
      ("POST", "spaces/list/invitations", #"{"role":"reader","expiresIn":31536001}"#),
      ("POST", "spaces/list/invitations", #"{}"#), ("POST", "invitations", #"{"code":1}"#),
    ])
  func malformed(method: String, path: String, body: String) async throws {
    let ada = try await user("ada")
    try await create("list", by: ada)
    let answer = await send(method, path, body, by: ada)
    #expect(answer.problem?.code == .malformedMessage, "\(answer.text)")
  }
}

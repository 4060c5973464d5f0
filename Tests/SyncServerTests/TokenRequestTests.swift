import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

@Suite("Tokens and the audit log over HTTP", .hangLimit)
struct TokenRequestTests {
  private let fixture = ServiceFixture(spaces: ["notes", "other"])

  private func token(_ roles: [String: Role]) async throws -> AccessToken {
    let patterns = try roles.map { (try #require(SpacePattern($0.key)), $0.value) }
    let secret = AccessRuleTests.token()
    try await fixture.store.addToken(
      secret, try #require(AccessGrants(Dictionary(uniqueKeysWithValues: patterns))))
    return secret
  }

  private func create(_ json: String, by token: AccessToken?) async -> HTTPResponse {
    await fixture.send("POST", "/v1/tokens", token: token, body: Array(json.utf8))
  }

  private func object(_ answer: HTTPResponse) throws -> [String: Any] {
    try #require(
      try JSONSerialization.jsonObject(with: Data(answer.bytes)) as? [String: Any])
  }

  private func secret(_ answer: [String: Any]) throws -> AccessToken {
    let text = try #require(answer["token"] as? String)
    return try #require(AccessToken(text))
  }

  @Test("the list of tokens has pages, and each caller gets its own tokens in them")
  func pages() async throws {
    let root = try await token(["*": .admin])
    let admin = try await token(["notes": .admin])
    for index in 0..<5 {
      let space = index.isMultiple(of: 2) ? "notes" : "other"
      fixture.clock.advanceWall(milliseconds: 1)
      _ = await create(#"{"name":"t\#(index)","spaces":{"\#(space)":"reader"}}"#, by: root)
    }
    func list(_ query: String, by token: AccessToken) async throws -> (names: [String], String?) {
      let answer = try object(await fixture.send("GET", "/v1/tokens\(query)", token: token))
      let tokens = try #require(answer["tokens"] as? [[String: Any]])
      return (tokens.compactMap { $0["name"] as? String }, answer["next"] as? String)
    }
    let (first, next) = try await list("?limit=2", by: admin)
    #expect(first == ["", "t0"])
    let (second, end) = try await list("?limit=2&after=\(try #require(next))", by: admin)
    #expect(second == ["t2", "t4"] && end == nil)
    #expect(try await list("", by: root).names.count == 7)
    for query in ["?limit=0", "?limit=1001", "?after=x", "?after=1/x", "?after=1/00/0"] {
      let answer = await fixture.send("GET", "/v1/tokens\(query)", token: root)
      #expect(answer.problem?.code == .malformedMessage, "\(query)")
    }
  }

  @Test("a page of tokens ends when their patterns are many, and the next one continues")
  func largePages() async throws {
    let root = try await token(["*": .admin])
    let roles = Dictionary(uniqueKeysWithValues: (0..<100).map { ("s\($0)", Role.reader) })
    for _ in 0..<60 { _ = try await token(roles) }
    var (pages, next) = ([Int](), String?.some(""))
    while let place = next {
      let query = place.isEmpty ? "" : "?after=\(place)"
      let answer = try object(await fixture.send("GET", "/v1/tokens\(query)", token: root))
      let tokens = try #require(answer["tokens"] as? [[String: Any]])
      pages.append(tokens.reduce(0) { $0 + (($1["spaces"] as? [String: Any])?.count ?? 0) })
      next = answer["next"] as? String
    }
    #expect(pages.count == 2 && pages[0] <= 5_100)
    #expect(pages.reduce(0, +) == 6_001)
  }

  @Test(
    "names and owners that are unsafe to show are refused, and those of any language are taken",
    arguments: [
      ("Ada's phone", true), ("Ноутбук", true), ("👩‍💻", true), ("a\u{301}", true), ("", true),
      ("a\u{202E}b", false), ("a\u{2066}b", false), ("a\u{200B}b", false), ("a\u{AD}b", false),
      ("a\u{E0041}b", false), ("a\u{3164}b", false), ("a\u{2063}b", false),
      ("a\u{FFF9}b", false), ("a\u{180E}b", false), ("a\u{115F}b", false), ("a\u{2028}b", false),
      ("a\u{1D173}b", false), ("a\u{7F}b", false), ("a\nb", false), ("\u{600}\u{202E}", false),
    ])
  func names(name: String, isTaken: Bool) throws {
    let pattern = try #require(SpacePattern("notes"))
    let grants = try #require(AccessGrants([pattern: .reader]))
    #expect((TokenRequest(name: name, grants: grants).fault == nil) == isTaken)
    let owner = TokenRequest(owner: name, grants: grants)
    #expect((owner.fault == nil) == (isTaken && !name.isEmpty))
    // The rules for device names, none of them empty, and for titles are the same.
    let device = Result { try DeviceName(checking: name) }
    #expect(((try? device.get()) != nil) == (isTaken && !name.isEmpty))
    let manifest = MissionManifest(
      space: .known("notes"), id: try #require(MissionID("tour")), version: 1, title: name,
      items: [MissionItem(path: "a", size: 1, hash: ContentHash(of: [1]))])
    #expect((manifest.fault() == nil) == isTaken)
  }

  @Test("an admin of the server creates, lists, rotates and revokes tokens")
  func life() async throws {
    let root = try await token(["*": .admin])
    fixture.clock.advanceWall(milliseconds: 1)
    let made = await create(
      #"{"name":"phone","owner":"ada","spaces":{"notes":"writer"},"expiresIn":60}"#, by: root)
    #expect(made.status == 201)
    let token = try object(made)
    let id = try #require(token["id"] as? String)
    let secret = try self.secret(token)
    #expect(token["expiresAt"] as? Int64 == ServiceClockDouble.wall + 60_001)
    #expect(await fixture.send("GET", "/v1/spaces/notes", token: secret).status == 200)
    let listed = await fixture.send("GET", "/v1/tokens", token: root)
    let list = try #require(object(listed)["tokens"] as? [[String: Any]])
    #expect(list.count == 2 && list[1]["name"] as? String == "phone")
    #expect(list[1]["owner"] as? String == "ada" && list[1]["token"] == nil)
    #expect(!String(decoding: listed.bytes, as: UTF8.self).contains("ferry_"))
    let rotated = await fixture.send(
      "POST", "/v1/tokens/\(id)/rotation", token: root, body: Array(#"{"grace":0}"#.utf8))
    #expect(rotated.status == 200)
    let next = try self.secret(object(rotated))
    #expect(next != secret)
    #expect(try object(rotated)["id"] as? String == id)
    #expect(await fixture.send("GET", "/v1/spaces/notes", token: next).status == 200)
    fixture.clock.advance(IdentityCache.timeToLive)
    #expect(await fixture.send("GET", "/v1/spaces/notes", token: secret).status == 401)
    let path = "/v1/tokens/\(id)"
    #expect(await fixture.send("DELETE", path, token: root).status == 204)
    #expect(await fixture.send("DELETE", path, token: root).status == 404)
    fixture.clock.advance(IdentityCache.timeToLive)
    #expect(await fixture.send("GET", "/v1/spaces/notes", token: next).status == 401)
    let log = try #require(
      object(await fixture.send("GET", "/v1/audit", token: root))["entries"] as? [[String: Any]])
    #expect(
      log.compactMap { $0["action"] as? String }
        == ["token_created", "token_rotated", "token_revoked"])
    #expect(
      log.allSatisfy { $0["principal"] as? String == "token:\(TokenID(hash: root.hash))" })
  }

  @Test("an admin of some spaces manages tokens of these spaces only")
  func escalation() async throws {
    let root = try await token(["*": .admin])
    let admin = try await token(["notes": .admin, "list-*": .admin, "other": .writer])
    for spaces in [#"{"notes":"admin"}"#, #"{"list-7":"reader"}"#, #"{"list-a*":"admin"}"#] {
      #expect(await create("{\"spaces\":\(spaces)}", by: admin).status == 201)
    }
    for json in [
      #"{"spaces":{"*":"reader"}}"#, #"{"spaces":{"other":"reader"}}"#,
      #"{"spaces":{"notes":"reader","other":"reader"}}"#, #"{"spaces":{"li*":"reader"}}"#,
      #"{"spaces":{"notes":"reader"},"owner":"root"}"#,
    ] {
      #expect(await create(json, by: admin).problem?.code == .forbidden, "\(json)")
    }
    let owned = try object(
      await create(#"{"spaces":{"notes":"reader"},"owner":"ada"}"#, by: root))
    let id = try #require(owned["id"] as? String)
    let rotated = await fixture.send("POST", "/v1/tokens/\(id)/rotation", token: admin)
    #expect(rotated.problem?.code == .forbidden, "its secret would be ada's")
    #expect(await fixture.send("DELETE", "/v1/tokens/\(id)", token: admin).status == 204)
    let others = "/v1/tokens/\(TokenID(hash: root.hash))"
    #expect(await fixture.send("DELETE", others, token: admin).status == 404)
    #expect(await fixture.send("POST", others + "/rotation", token: admin).status == 404)
    let list = try #require(
      object(await fixture.send("GET", "/v1/tokens", token: admin))["tokens"] as? [[String: Any]])
    #expect(list.count == 3, "its own spans a space that it does not administer")
    #expect(await fixture.send("GET", "/v1/audit", token: admin).problem?.code == .forbidden)
    for role in [Role.reader, .writer] {
      let small = try await token(["*": role])
      for (method, path) in [
        ("GET", "/v1/tokens"), ("POST", "/v1/tokens"), ("GET", "/v1/audit"),
        ("DELETE", others), ("POST", others + "/rotation"),
      ] {
        #expect(await fixture.send(method, path, token: small).problem?.code == .forbidden)
        #expect(await fixture.send(method, path).problem?.code == .unauthorized)
      }
    }
  }

  @Test("the first token can be created on an open server, and closes it")
  func first() async throws {
    #expect(await create(#"{"spaces":{"*":"admin"}}"#, by: nil).status == 201)
    #expect(await create(#"{"spaces":{"*":"admin"}}"#, by: nil).status == 401)
    #expect(await fixture.send("GET", "/v1/spaces/notes").status == 401)
  }

  @Test(
    "requests that break a rule are refused",
    arguments: [
      "", "{}", "[]", #"{"spaces":{}}"#, #"{"spaces":{"notes":"owner"}}"#,
      #"{"spaces":{"notes":"reader"},"expiresIn":0}"#,
      #"{"spaces":{"notes":"reader"},"expiresIn":9223372036854775807}"#,
      #"{"spaces":{"notes":"reader"},"owner":""}"#,
      #"{"spaces":{"notes":"reader"},"name":"a\nb"}"#,
      #"{"spaces":{"notes":"reader"},"spaces":{"*":"admin"}}"#,
    ])
  func malformed(_ json: String) async throws {
    let root = try await token(["*": .admin])
    #expect(await create(json, by: root).problem?.code == .malformedMessage)
    let long = #"{"spaces":{"notes":"reader"},"name":"\#(String(repeating: "a", count: 201))"}"#
    #expect(await create(long, by: root).problem?.code == .malformedMessage)
    let id = TokenID(hash: root.hash)
    for grace in ["-1", "\"1\"", "9223372036854775807"] {
      let answer = await fixture.send(
        "POST", "/v1/tokens/\(id)/rotation", token: root,
        body: Array("{\"grace\":\(grace)}".utf8))
      #expect(answer.problem?.code == .malformedMessage, "\(grace)")
    }
    for query in ["since=x", "after=-1", "limit=x", "limit=0", "limit=1001", "space=-"] {
      let answer = await fixture.send("GET", "/v1/audit?\(query)", token: root)
      #expect(answer.problem?.code == .malformedMessage, "\(query)")
    }
  }
}

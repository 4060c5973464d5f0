import FerryHTTPServer
import FerryMissionServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("Access to missions", .hangLimit)
struct ServiceMissionAccessTests {
  private let content = Array("content".utf8)

  @Test("readers can read, admins can publish, and requests without a token can do neither")
  func roles() async throws {
    let fixture = try await MissionFixture()
    let admin = try await fixture.token(.admin)
    await fixture.upload(content, token: admin)
    #expect(await fixture.publish([content], token: admin).status == 200)
    let hash = ContentHash(of: content)
    let space = "/v1/spaces/notes"
    let reads = [
      ("GET", "\(space)/missions"), ("GET", "\(space)/missions/tour"),
      ("HEAD", "/v1/blobs/\(hash)"), ("GET", "/v1/blobs/\(hash)"),
    ]
    let writes = [
      ("PUT", "\(space)/missions/tour"), ("HEAD", "\(space)/blobs/\(hash)"),
      ("PUT", "\(space)/blobs/\(hash)"), ("DELETE", "\(space)/missions/tour"),
    ]
    for role in [Role.reader, .writer] {
      let token = try await fixture.token(role)
      for (method, path) in reads {
        #expect(await fixture.send(method, path, token: token).status == 200, "\(method) \(path)")
      }
      for (method, path) in writes {
        let answer = await fixture.send(method, path, token: token)
        #expect(answer.problem?.code == .forbidden, "\(method) \(path)")
      }
    }
    for (method, path) in reads + writes {
      let answer = await fixture.send(method, path)
      #expect(answer.problem?.code == .unauthorized, "\(method) \(path)")
    }
    var random = SystemRandomNumberGenerator()
    let unknown = await fixture.send(
      "GET", "/v1/blobs/\(hash)", token: AccessToken(random: &random))
    #expect(unknown.problem?.code == .unauthorized)
    #expect(unknown.headers["WWW-Authenticate"]?.contains("invalid_token") == true)
  }

  @Test("foreign content, absent content and an invalid hash get the same answer")
  func otherSpace() async throws {
    let fixture = try await MissionFixture()
    let admin = try await fixture.token(.admin, of: "other")
    await fixture.upload(content, to: "other", token: admin)
    let published = await fixture.publish([content], in: "other", token: admin)
    let record = try MissionRecord(decoding: published.bytes)
    let stranger = try await fixture.token(.admin)
    let answers = [
      ContentHash(of: content).description, record.manifest.description,
      ContentHash(of: [1]).description, "nothing",
    ]
    var bodies: Set<[UInt8]> = []
    for hash in answers {
      let answer = await fixture.send("GET", "/v1/blobs/\(hash)", token: stranger)
      #expect(answer.status == 404)
      bodies.insert(answer.bytes)
    }
    #expect(bodies.count == 1)
    let own = await fixture.send("GET", "/v1/blobs/\(ContentHash(of: content))", token: admin)
    #expect(own.status == 200)
  }

  @Test("without any token, every space's content is served to this machine")
  func open() async throws {
    let fixture = try await MissionFixture()
    await fixture.upload(content, to: "other")
    // Content sent but not published is readable by no user.
    let path = "/v1/blobs/\(ContentHash(of: content))"
    #expect(await fixture.send("GET", path).status == 404)
    _ = await fixture.publish([content], in: "other")
    #expect(await fixture.send("GET", path).status == 200)
    let gate = AccessGate(
      store: fixture.store, clock: ServiceClockDouble().clock, checksLoopback: true)
    let page = try await gate.identify(
      Visitor(credential: .none, host: "127.0.0.1", origin: "https://evil.example"))
    #expect(page.problemCode == .forbidden)
    let here = try await gate.identify(Visitor(credential: .none, host: "127.0.0.1"))
    #expect(here == .success(.anonymous))
  }

  @Test("a token for several spaces reads the content of each, and of no other")
  func severalSpaces() async throws {
    let fixture = try await MissionFixture()
    let secrets = try (0..<4).map { number -> (AccessToken, AccessGrants, Bool) in
      let roles: [[String: Role]] = [
        ["notes": .reader, "other": .reader], ["ot*": .reader], ["notes": .admin], ["x*": .admin],
      ]
      let patterns = try roles[number].map { (try #require(SpacePattern($0.key)), $0.value) }
      let grants = try #require(AccessGrants(Dictionary(uniqueKeysWithValues: patterns)))
      return (AccessRuleTests.token(), grants, number < 2)
    }
    await fixture.upload(content, to: "other")
    _ = await fixture.publish([content], in: "other")
    for (secret, grants, reads) in secrets {
      try await fixture.store.addToken(secret, grants)
      let answer = await fixture.send(
        "GET", "/v1/blobs/\(ContentHash(of: content))", token: secret)
      #expect((answer.status == 200) == reads, "\(grants.text)")
    }
  }
}

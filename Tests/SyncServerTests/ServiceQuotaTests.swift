import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// One user's permitted usage of a server besides the records of a space.
@Suite("Quotas of requests", .hangLimit)
struct ServiceQuotaTests {
  private static func quotas(_ change: (inout Quotas) -> Void) -> Quotas {
    var quotas = Quotas.standard
    change(&quotas)
    return quotas
  }

  @Test("each user's event streams are bounded")
  func streams() async throws {
    let fixture = ServiceFixture(quotas: Self.quotas { $0.streams = 2 })
    let (one, two) = (try await fixture.token(.reader), try await fixture.token(.reader))
    var open: [HTTPStream] = []
    for _ in 0..<2 {
      let answer = await fixture.send("GET", "/v1/spaces/notes/events", token: one)
      guard case .stream(let stream) = answer.body else {
        Issue.record("no stream but \(answer.status)")
        return
      }
      open.append(stream)
    }
    let refused = await fixture.send("GET", "/v1/spaces/notes/events", token: one)
    #expect(refused.status == 429 && refused.problem?.code == .streamQuota)
    #expect(refused.headers["Retry-After"] != nil)
    #expect(await fixture.send("GET", "/v1/spaces/notes/events", token: two).status == 200)
    open[0].connectionEnded()
    #expect(await fixture.send("GET", "/v1/spaces/notes/events", token: one).status == 200)
  }

  @Test("a stream that could not begin is not counted")
  func failedStream() async throws {
    let fixture = ServiceFixture(quotas: Self.quotas { $0.streams = 1 })
    let token = try await fixture.token(.reader)
    // The token and the space are remembered from here on.
    _ = await fixture.send("GET", "/v1/spaces/notes/changes", token: token)
    fixture.store.fail(.unavailable("the store is away"))
    for _ in 0..<3 {
      let answer = await fixture.send("GET", "/v1/spaces/notes/events", token: token)
      #expect(answer.status == 503)
    }
    fixture.store.fail(nil)
    #expect(await fixture.send("GET", "/v1/spaces/notes/events", token: token).status == 200)
  }

  @Test("a user's created spaces are bounded, and existing spaces are still answered")
  func spaces() async throws {
    let fixture = ServiceFixture(
      spaces: ["notes"], quotas: Self.quotas { $0.spaces = 1 })
    #expect(await fixture.send("PUT", "/v1/spaces/second").status == 200)
    let third = await fixture.send("PUT", "/v1/spaces/third")
    #expect(third.status == 507 && third.problem?.code == .storageQuota)
    #expect(await fixture.send("PUT", "/v1/spaces/second").status == 200)
  }

  @Test("a token for absent spaces creates no more of them than its user's bound")
  func spacesOfTokens() async throws {
    let fixture = ServiceFixture(
      spaces: ["notes"], quotas: Self.quotas { $0.spaces = 1 })
    let secret = AccessRuleTests.token()
    let pattern = try #require(SpacePattern("list-*"))
    try await fixture.store.addToken(secret, try #require(AccessGrants([pattern: .admin])))
    func create(_ space: String) async -> HTTPResponse {
      await fixture.send(
        "POST", "/v1/tokens", token: secret,
        body: Array("{\"spaces\":{\"\(space)\":\"reader\"}}".utf8))
    }
    #expect(await create("list-1").status == 201)
    #expect(await create("list-2").problem?.code == .storageQuota)
    #expect(await create("list-1").status == 201)
    let names = try await fixture.store.spaces().map(\.name.value)
    #expect(Set(names) == ["notes", "list-1"])
  }

  @Test("content that is sent and never published is bounded for each space")
  func uploads() async throws {
    let fixture = try await MissionFixture(quotas: Self.quotas { $0.unpublishedBytes = 1_000 })
    func upload(_ bytes: [UInt8], to space: String) async -> HTTPResponse {
      await fixture.send(
        "PUT", "/v1/spaces/\(space)/blobs/\(ContentHash(of: bytes))", body: bytes)
    }
    let parts = (0..<3).map { [UInt8](repeating: $0, count: 400) }
    #expect(await upload(parts[0], to: "notes").status == 201)
    #expect(await upload(parts[1], to: "notes").status == 201)
    let third = await upload(parts[2], to: "notes")
    #expect(third.status == 507 && third.problem?.code == .uploadQuota)
    #expect(await upload(parts[1], to: "notes").status == 204)
    #expect(await upload(parts[2], to: "other").status == 201)
  }

  @Test("many small uploads that are never published are bounded for each space")
  func smallUploads() async throws {
    let fixture = try await MissionFixture(quotas: Self.quotas { $0.unpublishedFiles = 3 })
    func upload(_ byte: UInt8, to space: String = "notes") async -> HTTPResponse {
      await fixture.send(
        "PUT", "/v1/spaces/\(space)/blobs/\(ContentHash(of: [byte]))", body: [byte])
    }
    for byte in 0..<3 as Range<UInt8> { #expect(await upload(byte).status == 201) }
    let refused = await upload(3)
    #expect(refused.status == 507 && refused.problem?.code == .uploadQuota)
    #expect(refused.problem?.detail.contains("the limit is 3") == true)
    // Content already here is no further upload.
    #expect(await upload(2).status == 204)
    #expect(await upload(3, to: "other").status == 201)
    let space = try #require(try await fixture.store.space(named: .known("notes")))
    let use = try await fixture.store.unpublishedUse(in: space.id)
    #expect(use == UnpublishedUse(files: 3, bytes: 3))
  }
}

import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer
@testable import FerrySyncServer

@Suite("A lost mission key", .hangLimit)
struct ServiceMissionKeyTests {
  private let one = Array("one".utf8)

  @Test("a lost key is not replaced unnoticed, even by a running server")
  func lost() async throws {
    let fixture = try await MissionFixture()
    for space in ["notes", "other"] { await fixture.upload(one, to: space) }
    let first = try MissionRecord(decoding: await fixture.publish([one]).bytes)
    let key = fixture.blobs.path + "/mission-key.pem"
    let kept = fixture.folder.file("kept.pem").path
    try FileManager.default.moveItem(atPath: key, toPath: kept)
    // Nor for a space without a mission yet: the key is the store's.
    for space in ["notes", "other"] {
      let refused = await fixture.publish([one], as: "next", in: space)
      #expect(refused.status == 409 && refused.problem?.code == .missionConflict)
      #expect(
        refused.problem?.detail.contains(Data(first.signer).base64EncodedString()) == true)
      #expect(refused.problem?.detail.contains(key) == false, "the path is the server's own")
    }
    #expect(!FileManager.default.fileExists(atPath: key))
    try FileManager.default.moveItem(atPath: kept, toPath: key)
    let next = await fixture.publish([one], as: "next")
    #expect(try MissionRecord(decoding: next.bytes).signer == first.signer)
  }

  @Test("another key signs on request, and from then on")
  func replaced() async throws {
    let fixture = try await MissionFixture()
    await fixture.upload(one)
    let first = try MissionRecord(decoding: await fixture.publish([one]).bytes)
    try FileManager.default.removeItem(atPath: fixture.blobs.path + "/mission-key.pem")
    let asked = await fixture.send(
      "PUT", "/v1/spaces/notes/missions/next", query: ["newKey": "true"],
      body: MissionFixture.document([one]))
    let next = try MissionRecord(decoding: asked.bytes)
    #expect(next.signer != first.signer)
    let again = try MissionRecord(decoding: await fixture.publish([one]).bytes)
    #expect(again.version == 2 && again.signer == next.signer)
  }

  @Test("only an admin of all spaces renews the key, and the audit log records it")
  func renewal() async throws {
    let fixture = try await MissionFixture()
    let (admin, root) = (try await fixture.token(.admin), AccessRuleTests.token())
    try await fixture.store.addToken(root, AccessGrants(everywhere: .admin))
    await fixture.upload(one, token: admin)
    let first = try MissionRecord(decoding: await fixture.publish([one], token: admin).bytes)
    try FileManager.default.removeItem(atPath: fixture.blobs.path + "/mission-key.pem")
    func renew(_ token: AccessToken) async -> HTTPResponse {
      await fixture.send(
        "PUT", "/v1/spaces/notes/missions/next", query: ["newKey": "true"], token: token,
        body: MissionFixture.document([one]))
    }
    #expect(await renew(admin).problem?.code == .forbidden)
    #expect(!FileManager.default.fileExists(atPath: fixture.blobs.path + "/mission-key.pem"))
    let renewed = try MissionRecord(decoding: await renew(root).bytes)
    #expect(renewed.signer != first.signer)
    let entries = try await fixture.store.audit(AuditQuery(space: .known("notes")))
    #expect(entries.map(\.action) == ["mission_published", "key_renewed", "mission_published"])
    #expect(entries[1].principal == "token:\(TokenID(hash: root.hash))")
  }

  @Test("a key that signed none of the published missions is refused")
  func other() async throws {
    let fixture = try await MissionFixture()
    await fixture.upload(one)
    let first = await fixture.publish([one])
    let key = fixture.blobs.path + "/mission-key.pem"
    try FileManager.default.removeItem(atPath: key)
    _ = try MissionSigner(file: key)
    for id in ["tour", "next"] {
      let refused = await fixture.publish([one], as: id)
      #expect(refused.problem?.code == .missionConflict, "\(id)")
    }
    let listed = await fixture.send("GET", "/v1/spaces/notes/missions/tour")
    #expect(listed.bytes == first.bytes)
  }
}

import FerryCryptography
import FerryHTTPServer
import FerryMissionServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("Requests about missions", .hangLimit)
struct ServiceMissionTests {
  private let one = Array("one".utf8)
  private let two = Array("two and more".utf8)

  @Test("a mission is published after its content was sent, and listed, signed and pulled")
  func publish() async throws {
    let fixture = try await MissionFixture()
    #expect(await fixture.upload(one).status == 201)
    #expect(await fixture.upload(two).status == 201)
    let published = await fixture.publish([one, two])
    #expect(published.status == 200)
    let record = try MissionRecord(decoding: published.bytes)
    #expect(record.version == 1 && record.items == 2 && record.size == 15)
    #expect(record.publishedAt == ServiceClockDouble.wall)
    let listed = await fixture.send("GET", "/v1/spaces/notes/missions")
    #expect(try MissionPage(decoding: listed.bytes).records == [record])
    let shown = await fixture.send("GET", "/v1/spaces/notes/missions/tour")
    #expect(try MissionRecord(decoding: shown.bytes) == record)
    let document = try #require(try fixture.blobs.content(of: record.manifest, limit: 10_000))
    #expect(document.count == Int(record.manifestSize))
    let manifest = try MissionManifest(decoding: document)
    #expect(manifest.space == .known("notes") && manifest.version == 1)
    let key = try Ed25519.PublicKey(record.signer)
    #expect(key.isValid(record.signature, for: MissionManifest.signedMessage(document)))
    let pulled = await fixture.send("GET", "/v1/spaces/notes/changes")
    #expect(pulled.text.contains(#""ferry_missions""#))
    #expect(pulled.text.contains(record.manifest.description))
    for hash in [record.manifest, ContentHash(of: one), ContentHash(of: two)] {
      let answer = await fixture.send("GET", "/v1/blobs/\(hash)")
      #expect(answer.status == 200)
      #expect(answer.headers["ETag"] == "\"\(hash)\"")
      #expect(answer.headers["Cache-Control"] == "private, max-age=31536000, immutable")
      #expect(MissionFixture.content(answer) == (try fixture.blobs.size(of: hash)).map { Int($0) })
    }
  }

  @Test("the same mission again changes nothing; any version but the next one is refused")
  func versions() async throws {
    let fixture = try await MissionFixture()
    await fixture.upload(one)
    await fixture.upload(two)
    let first = await fixture.publish([one])
    #expect(await fixture.publish([one]).bytes == first.bytes)
    #expect(await fixture.publish([one], version: 1).bytes == first.bytes)
    for version in [1, 3] as [Int64] {
      let answer = await fixture.publish([two], version: version)
      #expect(answer.status == 409 && answer.problem?.code == .missionConflict)
    }
    let second = await fixture.publish([two], version: 2)
    #expect(try MissionRecord(decoding: second.bytes).version == 2)
    #expect(try await fixture.store.space(named: .known("notes"))?.head == 2)
    // Content named by the first version is readable still.
    #expect(await fixture.send("GET", "/v1/blobs/\(ContentHash(of: one))").status == 200)
    #expect(await fixture.send("DELETE", "/v1/spaces/notes/missions/tour").status == 204)
    let third = await fixture.publish([one])
    #expect(try MissionRecord(decoding: third.bytes).version == 3)
  }

  @Test("a retracted mission is removed with its content, and reported as such")
  func retract() async throws {
    let fixture = try await MissionFixture()
    await fixture.upload(one)
    let record = try MissionRecord(decoding: await fixture.publish([one]).bytes)
    #expect(await fixture.send("DELETE", "/v1/spaces/notes/missions/tour").status == 204)
    let path = "/v1/spaces/notes/missions/tour"
    for (method, target) in [
      ("GET", path), ("DELETE", path), ("GET", "/v1/blobs/\(record.manifest)"),
      ("GET", "/v1/blobs/\(ContentHash(of: one))"),
    ] {
      let answer = await fixture.send(method, target)
      #expect(answer.problem?.code == .notFound, "\(method) \(target)")
    }
    let listed = await fixture.send("GET", "/v1/spaces/notes/missions")
    #expect(listed.text == #"{"missions":[],"next":null}"#)
  }

  @Test("an item names only content that its own space has")
  func ownContent() async throws {
    let fixture = try await MissionFixture()
    await fixture.upload(one, to: "other")
    #expect(await fixture.publish([one], in: "other").status == 200)
    let refused = await fixture.publish([one])
    #expect(refused.status == 422 && refused.problem?.code == .contentMismatch)
    #expect(refused.problem?.detail.contains("item 0") == true)
    // Nor does an upload reveal that another space has it.
    let path = "/v1/spaces/notes/blobs/\(ContentHash(of: one))"
    let state = await fixture.send("HEAD", path)
    #expect(state.headers["Upload-Offset"] == "0" && state.headers["Upload-Complete"] == "?0")
    #expect(await fixture.upload(one).status == 201)
    #expect(await fixture.publish([one]).status == 200)
    let wrongSize = Array(
      #"{"items":[{"path":"a","size":9,"sha256":"\#(ContentHash(of: one))"}]}"#.utf8)
    let wrong = await fixture.send("PUT", "/v1/spaces/notes/missions/x", body: wrongSize)
    #expect(wrong.problem?.code == .contentMismatch)
  }

  @Test("items can be on other servers, and then this server needs none of their content")
  func foreign() async throws {
    let fixture = try await MissionFixture()
    let hash = ContentHash(of: two)
    let document = Array(
      #"{"items":[{"path":"a","size":12,"sha256":"\#(hash)","url":"https://e.example/a","hosted":false}]}"#
        .utf8)
    let answer = await fixture.send("PUT", "/v1/spaces/notes/missions/far", body: document)
    #expect(answer.status == 200)
    #expect(await fixture.send("GET", "/v1/blobs/\(hash)").status == 404)
  }

  @Test("a document that is larger than a message is sent as content first")
  func largeDocument() async throws {
    let fixture = try await MissionFixture()
    await fixture.upload(one)
    let document = MissionFixture.document([one])
    let query = ["document": ContentHash(of: document).description]
    let path = "/v1/spaces/notes/missions/tour"
    let early = await fixture.send("PUT", path, query: query)
    #expect(early.problem?.code == .contentMismatch)
    await fixture.upload(document)
    #expect(await fixture.send("PUT", path, query: query).status == 200)
    // Not the content sent by another space.
    let other = await fixture.send("PUT", "/v1/spaces/other/missions/tour", query: query)
    #expect(other.problem?.code == .contentMismatch)
  }

  @Test(
    "an invalid mission is refused with the reason",
    arguments: [
      ("tour", ""), ("tour", "[]"), ("tour", #"{"items":[]}"#), ("-x", #"{"items":[]}"#),
      ("tour", #"{"mission":"other","items":[{"path":"a","size":0,"sha256":"00"}]}"#),
      ("tour", #"{"format":2,"items":[]}"#),
    ])
  func malformed(id: String, body: String) async throws {
    let fixture = try await MissionFixture()
    let answer = await fixture.send(
      "PUT", "/v1/spaces/notes/missions/\(id)", body: Array(body.utf8))
    #expect(answer.problem?.code == .malformedMessage)
  }

  @Test("a server without a directory for content reports that, and lists published missions")
  func noDirectory() async throws {
    let fixture = try await MissionFixture(hasBlobs: false)
    let hash = ContentHash(of: one)
    for (method, path) in [
      ("GET", "/v1/blobs/\(hash)"), ("PUT", "/v1/spaces/notes/missions/a"),
      ("PUT", "/v1/spaces/notes/blobs/\(hash)"), ("HEAD", "/v1/spaces/notes/blobs/\(hash)"),
    ] {
      let answer = await fixture.send(method, path)
      #expect(answer.problem?.code == .unavailable, "\(method) \(path)")
      #expect(answer.problem?.detail.contains("--blobs") == true)
    }
    #expect(await fixture.send("GET", "/v1/spaces/notes/missions").status == 200)
  }

  @Test("content that is missing from the disk is a server error, and logged")
  func lostContent() async throws {
    let fixture = try await MissionFixture()
    await fixture.upload(one)
    _ = await fixture.publish([one])
    _ = try fixture.blobs.remove(ContentHash(of: one))
    let answer = await fixture.send("GET", "/v1/blobs/\(ContentHash(of: one))")
    #expect(answer.problem?.code == .unavailable)
    #expect(fixture.recorder.lines.contains { $0.contains("content is missing or damaged") })
    // Sending it again repairs it.
    #expect(await fixture.upload(one).status == 201)
    #expect(await fixture.send("GET", "/v1/blobs/\(ContentHash(of: one))").status == 200)
  }
}

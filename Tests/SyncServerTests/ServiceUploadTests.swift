import FerryHTTPServer
import FerryMissionServer
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

@Suite("Uploads over HTTP", .hangLimit)
struct ServiceUploadTests {
  private let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 / 256) }

  private var path: String { "/v1/spaces/notes/blobs/\(ContentHash(of: bytes))" }

  private func part(
    _ fixture: MissionFixture, _ range: Range<Int>, total: Int = 1_000
  ) async -> HTTPResponse {
    await fixture.send(
      "PUT", path,
      headers: ["Content-Range": "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)"],
      body: Array(bytes[range]))
  }

  @Test("each part of an upload is answered with the next offset, across restarts")
  func parts() async throws {
    let fixture = try await MissionFixture()
    let begun = await fixture.send("HEAD", path)
    #expect(begun.status == 204 && begun.headers["Upload-Offset"] == "0")
    let first = await part(fixture, 0..<400)
    #expect(first.status == 204 && first.headers["Upload-Offset"] == "400")
    #expect(first.headers["Upload-Complete"] == "?0")
    // Nothing is remembered in memory: the directory has the state.
    let state = await fixture.send("HEAD", path)
    #expect(state.headers["Upload-Offset"] == "400")
    for wrong in [0..<300, 300..<700, 500..<1_000] {
      let answer = await part(fixture, wrong)
      #expect(answer.status == 409 && answer.problem?.code == .uploadConflict)
      #expect(answer.headers["Upload-Offset"] == "400")
    }
    let last = await part(fixture, 400..<1_000)
    #expect(last.status == 201 && last.headers["Upload-Complete"] == "?1")
    for answer in [await fixture.send("HEAD", path), await part(fixture, 400..<1_000)] {
      #expect(answer.status == 204 && answer.headers["Upload-Offset"] == "1000")
      #expect(answer.headers["Upload-Complete"] == "?1")
    }
    #expect(try fixture.blobs.isIntact(ContentHash(of: bytes)) == true)
  }

  @Test("content that does not have its hash is refused, and is sent from the start")
  func mismatch() async throws {
    let fixture = try await MissionFixture()
    _ = await part(fixture, 0..<400)
    let wrong = await fixture.send(
      "PUT", path, headers: ["Content-Range": "bytes 400-999/1000"],
      body: [UInt8](repeating: 0, count: 600))
    #expect(wrong.status == 422 && wrong.problem?.code == .contentMismatch)
    let state = await fixture.send("HEAD", path)
    #expect(state.headers["Upload-Offset"] == "0")
    #expect(await part(fixture, 0..<1_000).status == 201)
  }

  @Test("content in one message needs no range, even if it is empty")
  func whole() async throws {
    let fixture = try await MissionFixture()
    #expect(await fixture.upload(bytes).status == 201)
    #expect(await fixture.upload([]).status == 201)
    #expect(await fixture.publish([[], bytes]).status == 200)
  }

  @Test("unfinished uploads above the quota are refused, and continue when there is room again")
  func quota() async throws {
    let fixture = try await MissionFixture(uploadQuota: 1_500)
    #expect(await part(fixture, 0..<400).status == 204)
    let other = (0..<1_200).map { UInt8(truncatingIfNeeded: $0 &* 3) }
    func send(_ range: Range<Int>, to space: String = "notes") async -> HTTPResponse {
      await fixture.send(
        "PUT", "/v1/spaces/\(space)/blobs/\(ContentHash(of: other))",
        headers: ["Content-Range": "bytes \(range.lowerBound)-\(range.upperBound - 1)/1200"],
        body: Array(other[range]))
    }
    let refused = await send(0..<600)
    #expect(refused.status == 507 && refused.problem?.code == .uploadQuota)
    #expect(refused.problem?.detail.contains("--upload-quota") == true)
    #expect(await send(0..<600, to: "other").status == 204, "each space has its own")
    #expect(await part(fixture, 400..<1_000).status == 201)
    #expect(await send(0..<600).status == 204)
    #expect(await send(600..<1_200).status == 201)
  }

  @Test("content is served while large uploads are checked")
  func besideChecks() async throws {
    let fixture = try await MissionFixture()
    await fixture.upload(bytes)
    #expect(await fixture.publish([bytes]).status == 200)
    let space = try #require(try await fixture.store.space(named: .known("notes")))
    let hash = ContentHash(of: [7])
    // A process busy with an upload, such as the check, keeps other senders of the same content
    // waiting.
    let busy = open(
      fixture.blobs.path + "/incoming/part-\(space.id)-\(hash)", O_RDWR | O_CREAT, 0o600)
    defer { close(busy) }
    #expect(flock(busy, LOCK_EX) == 0)
    let statuses = await withTaskCancellationHandler {
      await Self.race(fixture, hash, reading: bytes) { flock(busy, LOCK_UN) }
    } onCancel: {
      // Should they wait for each other, the time limit ends it.
      flock(busy, LOCK_UN)
    }
    #expect(statuses.count { $0 == 204 } == 1 && statuses.count { $0 == 409 } == 7)
  }

  /// Sends the same part eight times at once, while the test holds it until content was read fifty
  /// times. Returns the results of the eight.
  private static func race(
    _ fixture: MissionFixture, _ hash: ContentHash, reading bytes: [UInt8],
    release: @escaping @Sendable () -> Void
  ) async -> [Int] {
    await withTaskGroup(of: Int?.self) { group in
      for _ in 0..<8 {
        group.addTask {
          await fixture.send(
            "PUT", "/v1/spaces/notes/blobs/\(hash)",
            headers: ["Content-Range": "bytes 0-0/1000"], body: [1]
          ).status
        }
      }
      group.addTask {
        for _ in 0..<50 {
          let answer = await fixture.send("GET", "/v1/blobs/\(ContentHash(of: bytes))")
          #expect(answer.status == 200)
        }
        release()
        return nil
      }
      return await group.reduce(into: [Int]()) { if let status = $1 { $0.append(status) } }
    }
  }

  @Test(
    "an invalid range of an upload is refused",
    arguments: [
      "bytes 0-999/*", "bytes */1000", "bytes 0-998/1000", "bytes 5-4/1000", "bytes 0-999/999",
      "items 0-999/1000", "bytes 0-999/99999999999999999999", "bytes=0-999/1000", "",
    ])
  func ranges(header: String) async throws {
    let fixture = try await MissionFixture()
    let answer = await fixture.send(
      "PUT", path, headers: ["Content-Range": header], body: bytes)
    #expect(answer.problem?.code == .malformedMessage)
    let huge = await fixture.send(
      "PUT", path, headers: ["Content-Range": "bytes 0-999/99999999999999"], body: bytes)
    #expect(huge.problem?.code == .limitExceeded)
    let name = await fixture.send("PUT", "/v1/spaces/notes/blobs/abc", body: bytes)
    #expect(name.problem?.code == .malformedMessage)
  }
}

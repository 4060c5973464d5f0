import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryMissions

@Suite("Resumed downloads", .hangLimit)
struct DownloadResumeTests {
  private typealias Answer = HostileServer.Answer
  private let content = DownloadFixture.content
  private let fixture: DownloadFixture

  init() throws { fixture = try DownloadFixture() }

  /// Fetches until the server has sent so many bytes, and is cancelled then.
  private func cancelled(inChunks: Bool, after count: Int, tag: String? = "\"a\"") async throws {
    let content = content
    let server = try HostileServer {
      .good(content, tag: tag, to: $0).cut(after: inChunks ? 120_000 : count, .silence)
    }
    defer { server.stop() }
    let job = fixture.job(content, from: server.url, inChunks: inChunks)
    let fixture = fixture
    let task = Task { await fixture.failure(job) }
    await server.hasServed(count)
    // Bytes sent by the server are on their way; all of them have arrived once they are counted.
    try await eventually("\(count) bytes to be counted") {
      fixture.notes.withLock { $0.progress.last?.bytesFetched ?? 0 } >= Int64(count) - 65_536
    }
    task.cancel()
    #expect(await task.value?.kind == .cancelled)
  }

  /// Fetches from a good server; returns the bytes it sent.
  private func goOn(
    inChunks: Bool, tag: String? = "\"a\"", map: ChunkMap? = nil
  ) async throws -> (served: Int, outcome: DownloadOutcome, server: HostileServer) {
    let content = content
    let server = try HostileServer { .good(content, tag: tag, to: $0) }
    defer { server.stop() }
    let outcome = try await fixture.download(
      fixture.job(content, from: server.url, inChunks: inChunks, map: map))
    #expect(try fixture.content() == content)
    return (server.served, outcome, server)
  }

  private var recorded: ChunkMap? { fixture.notes.withLock { $0.recorded.last } }

  @Test("after a pause only the missing bytes are fetched", arguments: [true, false])
  func pause(inChunks: Bool) async throws {
    let count = inChunks ? 480_000 : 1_000_000
    try await cancelled(inChunks: inChunks, after: count)
    let (served, outcome, _) = try await goOn(inChunks: inChunks, map: recorded)
    #expect(served <= content.count - count + 65_536)
    #expect(outcome.bytesReused + outcome.bytesFetched == Int64(content.count))
  }

  @Test("a small file keeps verified chunks when an attempt fails")
  func smallFile() async throws {
    let small = Array(content.prefix(200_000))
    let server = try HostileServer { request in
      let start = request.range(of: small.count)?.lowerBound ?? 0
      return start < 131_072 ? .good(small, tag: nil, to: request) : Answer("503 Busy")
    }
    let failure = await fixture.failure(
      fixture.job(small, from: server.url, inChunks: true), attempts: 2
    ) {
      $0.rangeBytes = 65_536
      // One after another: the good parts arrive before the failure.
      $0.connections = 1
    }
    server.stop()
    #expect(failure?.kind == .server(503))
    let good = try HostileServer { .good(small, tag: nil, to: $0) }
    defer { good.stop() }
    let outcome = try await fixture.download(
      fixture.job(small, from: good.url, inChunks: true, map: recorded))
    #expect(outcome.bytesReused == 131_072)
    #expect(try fixture.content() == small)
  }

  @Test("after a kill only the missing bytes are fetched, even without a recorded map")
  func kill() async throws {
    try await cancelled(inChunks: true, after: 480_000)
    let (served, outcome, server) = try await goOn(inChunks: true, map: nil)
    #expect(served <= content.count - 480_000 + 65_536)
    #expect(outcome.bytesReused > 400_000)
    // Chunks begun before continue in their middle.
    let starts = server.requests.compactMap { $0.range(of: content.count)?.lowerBound }
    #expect(starts.contains { $0 % 65_536 != 0 })
  }

  @Test(
    "a file that was complete at a kill is not fetched again, even if nothing had noted its end",
    arguments: [true, false])
  func killedAtTheEnd(inChunks: Bool) async throws {
    try Data(content).write(to: URL(fileURLWithPath: fixture.partialPath))
    let (served, outcome, _) = try await goOn(inChunks: inChunks, map: nil)
    #expect(served == 0)
    #expect(outcome.bytesReused == Int64(content.count))
  }

  @Test("a file of the right size and of other content is fetched", arguments: [true, false])
  func wrongAtTheEnd(inChunks: Bool) async throws {
    var other = content
    other[70_000] ^= 1
    try Data(other).write(to: URL(fileURLWithPath: fixture.partialPath))
    let (served, _, _) = try await goOn(inChunks: inChunks, map: nil)
    #expect(served == (inChunks ? 65_536 : content.count))
  }

  @Test("after a restart of the system only chunks with the right hash are kept")
  func restart() async throws {
    try await cancelled(inChunks: true, after: 480_000)
    let map = try #require(recorded)
    let claimed = try #require((0..<map.chunkCount).first { map[$0] })
    try damage(at: claimed * 65_536 + 5)
    fixture.notes.withLock { $0.boot = "boot-2" }
    let (served, outcome, server) = try await goOn(inChunks: true, map: map)
    #expect(outcome.bytesReused == Int64(map.present - 1) * 65_536)
    #expect(served == content.count - (map.present - 1) * 65_536)
    #expect(
      server.requests.contains {
        $0.range(of: content.count)?.contains(claimed * 65_536) == true
      })
  }

  @Test("the hash of the whole finds content that changed on disk, and it is fetched again")
  func rot() async throws {
    try await cancelled(inChunks: true, after: 480_000)
    let map = try #require(recorded)
    let claimed = try #require((0..<map.chunkCount).first { map[$0] })
    try damage(at: claimed * 65_536)
    let (_, outcome, _) = try await goOn(inChunks: true, map: map)
    #expect(outcome.bytesReused + outcome.bytesFetched == Int64(content.count) + 65_536)
  }

  @Test("a download that lost its file starts again")
  func lostFile() async throws {
    try await cancelled(inChunks: true, after: 480_000)
    try FileManager.default.removeItem(atPath: fixture.partialPath)
    let (served, _, _) = try await goOn(inChunks: true, map: recorded)
    #expect(served == content.count)
  }

  @Test("a resume requests the same version only, by its strong tag")
  func sameVersion() async throws {
    try await cancelled(inChunks: false, after: 1_000_000)
    let (_, _, server) = try await goOn(inChunks: false, map: recorded)
    #expect(server.requests.map { $0.fields["if-range"] } == ["\"a\""])
    #expect(server.requests[0].range(of: content.count)?.lowerBound ?? 0 > 900_000)
  }

  @Test("a resume starts again if the server has no strong tag", arguments: [nil, "W/\"a\""])
  func noVersion(_ tag: String?) async throws {
    try await cancelled(inChunks: false, after: 1_000_000, tag: tag)
    let (served, _, server) = try await goOn(inChunks: false, tag: tag, map: recorded)
    #expect(served == content.count)
    #expect(server.requests.allSatisfy { $0.fields["if-range"] == nil })
    #expect(server.requests.allSatisfy { $0.fields["range"] == nil })
  }

  @Test(
    "two versions of a file are never spliced, whether the server checks the version or not",
    arguments: [true, false])
  func changed(mindsVersion: Bool) async throws {
    let former = DownloadFixture.bytes(content.count, seed: 7)
    let content = content
    let server = try HostileServer {
      if $0.number == 0 { return Answer.good(former, tag: "\"1\"", to: $0).cut(after: 900_000) }
      var request = $0
      if !mindsVersion { request.fields["if-range"] = nil }
      return Answer.good(content, tag: "\"2\"", to: request)
    }
    defer { server.stop() }
    let outcome = try await fixture.download(
      fixture.job(content, from: server.url, inChunks: false))
    #expect(try fixture.content() == content)
    #expect(server.requests[1].fields["if-range"] == "\"1\"")
    #expect(outcome.bytesFetched >= Int64(content.count))
  }

  @Test("a file that differs from the manifest's is never spliced")
  func changedForGood() async throws {
    let other = DownloadFixture.bytes(content.count, seed: 7)
    let content = content
    let server = try HostileServer {
      $0.number == 0
        ? Answer.good(content, tag: "\"1\"", to: $0).cut(after: 900_000)
        : Answer.good(other, tag: "\"2\"", to: $0)
    }
    defer { server.stop() }
    let job = fixture.job(content, from: server.url, inChunks: false)
    #expect(await fixture.failure(job)?.kind == .wrongContent(chunk: nil))
  }

  @Test("a file that changes with every answer is given up")
  func everChanging() async throws {
    let content = content
    let server = try HostileServer {
      var request = $0
      request.fields["if-range"] = nil
      return Answer.good(content, tag: "\"\($0.number)\"", to: request).cut(after: 900_000)
    }
    defer { server.stop() }
    let job = fixture.job(content, from: server.url, inChunks: false)
    #expect(await fixture.failure(job, attempts: 50)?.kind == .changed)
  }

  @Test("proven chunks are kept when the server's tag changes")
  func changedChunks() async throws {
    let content = content
    let server = try HostileServer {
      let answer = Answer.good(content, tag: "\"\($0.number)\"", to: $0)
      return $0.number % 3 == 0 ? answer.cut(after: 100_000) : answer
    }
    defer { server.stop() }
    let outcome = try await fixture.download(
      fixture.job(content, from: server.url, inChunks: true))
    #expect(try fixture.content() == content)
    #expect(outcome.bytesFetched == Int64(content.count))
  }

  @Test("chunks on the device are copied, and wrong ones are fetched")
  func reuse() async throws {
    let step = Int(DownloadFixture.chunkSize)
    let former = fixture.directory.file("former")
    var bytes = content
    bytes[3 * step] ^= 1
    try Data(bytes).write(to: former)
    let content = content
    let hashes = (0..<10).map { DownloadFixture.hash(content[$0 * step..<($0 + 1) * step]) }
    let server = try HostileServer { .good(content, tag: nil, to: $0) }
    defer { server.stop() }
    let job = fixture.job(content, from: server.url, inChunks: true) { hash in
      hashes.firstIndex(of: hash).map {
        LocalChunk(path: former.path, offset: Int64($0 * step), length: step)
      }
    }
    let outcome = try await fixture.download(job)
    #expect(try fixture.content() == content)
    #expect(outcome.bytesReused == Int64(9 * step))
    #expect(server.served == content.count - 9 * step)
  }

  @Test("a complete file needs no server")
  func complete() async throws {
    try Data(content).write(to: URL(filePath: fixture.partialPath))
    var map = ChunkMap(chunkCount: 46)
    for chunk in 0..<46 { map[chunk] = true }
    let job = fixture.job(content, from: "http://127.0.0.1:1/", inChunks: true, map: map)
    #expect(try await fixture.download(job).bytesReused == Int64(content.count))
    #expect(try fixture.content() == content)
  }

  @Test("an empty file needs no request, and is still checked")
  func empty() async throws {
    let job = fixture.job([], from: "http://127.0.0.1:1/", inChunks: false)
    #expect(try await fixture.download(job).bytesFetched == 0)
    #expect(try fixture.content() == [])
    var wrong = job
    wrong.hash = DownloadFixture.hash([1])
    #expect(await fixture.failure(wrong)?.kind == .wrongContent(chunk: nil))
  }

  @Test("a full disk is reported, and received chunks are kept")
  func diskFull() async throws {
    let small = Array(content.prefix(200_000))
    let server = try HostileServer { .good(small, tag: nil, to: $0) }
    defer { server.stop() }
    var job = fixture.job(small, from: server.url, inChunks: true)
    job.partialPath = "/dev/full"
    #expect(await fixture.failure(job)?.kind == .diskFull)
  }

  @Test("a download fails if its map cannot be recorded")
  func unrecordable() async throws {
    struct Refusal: Error {}
    let content = content
    let server = try HostileServer { .good(content, tag: "\"a\"", to: $0) }
    defer { server.stop() }
    var job = fixture.job(content, from: server.url, inChunks: false)
    job.record = { _ in throw Refusal() }
    #expect(await fixture.failure(job)?.kind == .file)
  }

  private func damage(at offset: Int) throws {
    let handle = try FileHandle(forUpdating: URL(filePath: fixture.partialPath))
    try handle.seek(toOffset: UInt64(offset))
    try handle.write(contentsOf: [content[offset] ^ 1])
    try handle.close()
  }
}

import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

@Suite("Encrypted downloads", .hangLimit)
struct SealedDownloadTests {
  private typealias Answer = HostileServer.Answer
  private let content = Array(DownloadFixture.content.prefix(1_500_000))
  private let fixture: DownloadFixture
  private let files: DiskFileStore

  init() throws {
    fixture = try DownloadFixture()
    files = try DiskFileStore(
      root: fixture.directory.file("store").path, key: [UInt8](repeating: 5, count: 32))
  }

  private func job(_ url: String, inChunks: Bool) -> DownloadJob {
    var job = fixture.job(
      content, from: url, inChunks: inChunks,
      map: fixture.notes.withLock { $0.recorded.last })
    let hash = DownloadFixture.hash(content)
    job.partialPath = files.partialPath(of: hash)
    job.seal = files.seal
    return job
  }

  /// Returns whether some part of the content is in a file unencrypted.
  private func isPlain(in path: String) throws -> Bool {
    let found = try Data(contentsOf: URL(filePath: path))
    return stride(from: 0, to: content.count - 32, by: 10_007).contains { place in
      found.range(of: Data(content[place..<place + 32])) != nil
    }
  }

  @Test(
    "no plain content is on the disk when a download stops, at any byte",
    arguments: [true, false])
  func interrupted(inChunks: Bool) async throws {
    let content = content
    let path = job("", inChunks: inChunks).partialPath
    for _ in 0..<3 {
      // It sends some bytes, within a chunk, and no more.
      let server = try HostileServer {
        $0.number == 0
          ? .good(content, tag: "\"a\"", to: $0).cut(after: 200_123) : Answer("403 Forbidden")
      }
      let failure = await fixture.failure(job(server.url, inChunks: inChunks)) {
        // Other connections would end the running transfer when they fail.
        $0.connections = 1
      }
      #expect(failure?.kind == .server(403))
      #expect(try !isPlain(in: path))
      server.stop()
    }
    let good = try HostileServer { .good(content, tag: "\"a\"", to: $0) }
    defer { good.stop() }
    let last = job(good.url, inChunks: inChunks)
    let outcome = try await fixture.download(last)
    #expect(outcome.bytesReused >= 500_000, "what came before the cuts is not fetched again")
    #expect(try !isPlain(in: path))
    let stored = StoredContent(hash: DownloadFixture.hash(content), size: Int64(content.count))
    try await files.adopt(stored)
    #expect(try await files.isIntact(stored))
    let opened = try await files.open(stored, partSize: 0, parts: [])
    #expect(try await opened.readAll() == content)
  }

  @Test(
    "an answer without a length is encrypted, too, whatever its size",
    arguments: [0, 5, 65_536, 65_537, 200_123])
  func withoutLength(size: Int) async throws {
    let content = Array(content.prefix(size))
    let server = try HostileServer { _ in
      var answer = Answer("200 OK", [], content)
      answer.length = nil
      return answer
    }
    defer { server.stop() }
    var job = job(server.url, inChunks: false)
    (job.size, job.hash) = (nil, nil)
    #expect(try await fixture.download(job).hash == DownloadFixture.hash(content))
    let file = StagedFile(path: job.partialPath, seal: files.seal, system: SystemFileCalls())
    #expect(try file.bytes(limit: .max) == content)
    let raw = try Data(contentsOf: URL(filePath: job.partialPath))
    #expect(content.count < 32 || raw.firstRange(of: Data(content.prefix(32))) == nil)
  }

  @Test("a partial file with another key, or without one, is fetched again")
  func otherKey() async throws {
    let content = content
    let cut = try HostileServer {
      $0.number == 0
        ? .good(content, tag: "\"a\"", to: $0).cut(after: 200_123) : Answer("403 Forbidden")
    }
    var plain = job(cut.url, inChunks: true)
    plain.seal = nil
    // Other connections would end the running transfer when they fail.
    let failure = await fixture.failure(plain) { $0.connections = 1 }
    #expect(failure?.kind == .server(403))
    #expect(try isPlain(in: plain.partialPath))
    cut.stop()
    let good = try HostileServer { .good(content, tag: "\"a\"", to: $0) }
    defer { good.stop() }
    let last = job(good.url, inChunks: true)
    #expect(try await fixture.download(last).bytesReused == 0)
    #expect(try !isPlain(in: last.partialPath))
    try await files.adopt(
      StoredContent(hash: DownloadFixture.hash(content), size: Int64(content.count)))
  }
}

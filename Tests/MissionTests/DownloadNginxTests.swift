import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

@Suite(
  "A download from a real nginx", .hangLimit,
  .enabled(if: NginxFileServer.isAvailable))
struct DownloadNginxTests {
  private let former = DownloadFixture.bytes(3_000_000, seed: 5)
  private let content = DownloadFixture.content
  private let fixture: DownloadFixture

  init() throws { fixture = try DownloadFixture() }

  /// Fetches until `count` bytes have come, and is cancelled then.
  private func cancelled(_ job: DownloadJob, after count: Int64) async throws -> DownloadError? {
    let fixture = fixture
    let task = Task { await fixture.failure(job) }
    try await eventually("\(count) bytes") {
      fixture.notes.withLock { $0.progress.last?.bytesFetched ?? 0 } >= count
    }
    task.cancel()
    return await task.value
  }

  private var recorded: ChunkMap? { fixture.notes.withLock { $0.recorded.last } }

  @Test("after a pause the download continues by range, and fetches at most a hundredth twice")
  func pause() async throws {
    let server = try await NginxFileServer(rate: 2_000_000)
    try server.replace(content, modified: 1_000_000_000)
    let job = fixture.job(content, from: server.url, inChunks: false)
    #expect(try await cancelled(job, after: 900_000)?.kind == .cancelled)
    let outcome = try await fixture.download(
      fixture.job(content, from: server.url, inChunks: false, map: recorded))
    #expect(try fixture.content() == content)
    #expect(outcome.bytesReused >= 900_000 - 65_536)
    #expect(outcome.bytesFetched + outcome.bytesReused == Int64(content.count))
    try await server.log { status, _ in status == 206 }
  }

  @Test("a file that is replaced during the download is never mixed", arguments: [true, false])
  func replaced(inChunks: Bool) async throws {
    let server = try await NginxFileServer(rate: inChunks ? 500_000 : 2_000_000)
    try server.replace(former, modified: 1_000_000_000)
    let job = fixture.job(content, from: server.url, inChunks: inChunks)
    // With hashes of chunks the former file is rejected at the first chunk.
    if inChunks {
      let failure = await fixture.failure(job)
      #expect(failure.map { "\($0.kind)".contains("wrongContent") } == true)
    } else {
      #expect(try await cancelled(job, after: 900_000)?.kind == .cancelled)
    }
    try server.replace(content, modified: 1_000_000_001)
    let outcome = try await fixture.download(
      fixture.job(content, from: server.url, inChunks: inChunks, map: recorded)
    ) { $0.connections = 4 }
    #expect(try fixture.content() == content)
    #expect(outcome.bytesFetched >= Int64(content.count))
    #expect(try server.log().last?.status == (inChunks ? 206 : 200))
  }

  @Test("several connections fetch ranges, and each byte once")
  func ranges() async throws {
    let server = try await NginxFileServer(rate: 20_000_000)
    try server.replace(content, modified: 1_000_000_000)
    let job = fixture.job(content, from: server.url, inChunks: true)
    let outcome = try await fixture.download(job)
    #expect(try fixture.content() == content)
    #expect(outcome.bytesFetched == Int64(content.count))
    let log = try server.log()
    #expect(log.allSatisfy { $0.status == 206 })
  }

  @Test("a redirect loop and a missing file fail with their reasons")
  func refused() async throws {
    let server = try await NginxFileServer(rate: 0)
    let loop = server.url.replacingOccurrences(of: "/file", with: "/loop")
    let looping = fixture.job(content, from: loop, inChunks: true)
    #expect(await fixture.failure(looping)?.kind == .wrongAnswer)
    let missing = fixture.job(content, from: server.url, inChunks: true)
    #expect(await fixture.failure(missing)?.kind == .server(404))
    #expect(try fixture.isUntouched(content.count))
  }
}

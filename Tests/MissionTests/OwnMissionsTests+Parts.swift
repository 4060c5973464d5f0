import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

// Passes over the bytes of items, and replaced parts.
extension OwnMissionsTests {
  /// More than the manifest and the answers in JSON have.
  private static let smallBytes = 64 << 10

  @Test(
    "a film is hashed and encrypted while it is written, and no byte of it is read or written again",
    arguments: [nil, [UInt8](repeating: 5, count: 32)])
  func readOnce(key: [UInt8]?) async throws {
    let calls = CountingFileCalls()
    let missions = try await open(key: key, system: calls)
    try await missions.add(mission([film, image, lessons]))
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .done)
    #expect(calls.bytesRead < Self.smallBytes, "\(calls.bytesRead) bytes were read")
    let bytes = world.film.count + world.image.count
    #expect(calls.bytesWritten < bytes + 2 * Self.smallBytes, "\(calls.bytesWritten) were written")
    let item = try #require(try await missions.items("course-7").first { $0.path == "film.mp4" })
    let chunks = try await missions.manager.store.chunks(of: item.content.hash)
    #expect(chunks.1.count == 3, "each part of 4 MiB has its own hash")
    #expect(try await missions.verify("course-7").isIntact)
    #expect(calls.bytesRead > bytes, "a check reads all of it")
    await missions.close()
  }

  @Test(
    "after an interruption only the part fetched before it is read, once",
    arguments: [nil, [UInt8](repeating: 5, count: 32)])
  func readOnceAfterInterruption(key: [UInt8]?) async throws {
    world.cut.withLock { $0 = 6_000_000 }
    var missions = try await open(key: key)
    try await missions.add(mission([film]))
    let download = try #require(try await missions.download(of: "film.mp4", in: "course-7"))
    for await status in download.updates() where status.progress.bytesDone >= 5_000_000 { break }
    await missions.close()
    world.cut.withLock { $0 = nil }
    let calls = CountingFileCalls()
    missions = try await open(key: key, system: calls)
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .done)
    #expect((4_900_000...6_000_000 + Self.smallBytes).contains(calls.bytesRead))
    #expect(try await missions.verify("course-7").isIntact)
    await missions.close()
  }

  @Test(
    "a composed mission has a manifest of this device: nothing signs it, and no catalogue has it")
  func unsigned() async throws {
    let missions = try await open()
    try await missions.add(mission([image]))
    let status = try #require(try await missions.waitUntilIdle("course-7").first)
    let row = try #require(try await missions.manager.store.missions().first)
    #expect(row.record.version == status.version && row.isActive)
    #expect(row.record.signature.isEmpty && row.record.signer.isEmpty)
    #expect(try await missions.manager.signers().isEmpty)
    #expect(try await missions.manager.mission(row.record.id).publishedVersion == nil)
    #expect(try await missions.manager.manifest(row.record.id).items.map(\.path) == [image.path])
    // The same record in a catalogue is refused.
    let document = try #require(try await missions.manager.store.manifest(of: row.version))
    #expect(throws: MissionError.self) {
      try ManifestCheck.manifest(document, of: row.record, in: DraftRule.space)
    }
    await missions.close()
  }

  /// Writes the same bytes for each job, and computes no hash.
  private struct PlainDownloader: Downloader {
    let bytes: [UInt8]

    func download(
      _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
    ) async throws(DownloadError) -> DownloadOutcome {
      do { try Data(bytes).write(to: URL(filePath: job.partialPath)) } catch {
        throw DownloadError(.file, "\(error)")
      }
      let size = Int64(bytes.count)
      progress(DownloadProgress(bytesDone: size, bytesTotal: size, bytesFetched: size))
      return DownloadOutcome(bytesFetched: size, bytesReused: 0, size: size)
    }
  }

  @Test("the app's own downloader fetches the items, and Ferry hashes what it did not")
  func ownDownloader() async throws {
    let missions = try await open(downloader: PlainDownloader(bytes: world.film))
    try await missions.add(mission([.file("film.mp4", from: "https://example.org/film")]))
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .done)
    #expect(try await missions.verify("course-7").isIntact)
    let content = try await missions.content(of: "film.mp4", in: "course-7")
    #expect(try await content.readAll() == world.film)
    #expect(server.served == 0)
    await missions.close()
  }
}

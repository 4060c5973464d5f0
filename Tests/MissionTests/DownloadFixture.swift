import FerryCryptography
import FerryNetworking
import FerryPlatform
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization

@testable import FerryMissions

/// A downloader over a real transport, with a separate directory and records of the actions.
final class DownloadFixture: Sendable {
  /// The records.
  struct Notes {
    var progress: [DownloadProgress] = []
    var recorded: [ChunkMap] = []
    var waits: [Duration] = []
    var boot = "boot-1"
  }

  static let chunkSize: Int64 = 64 << 10

  let directory: TemporaryDirectory
  let notes = Mutex(Notes())
  private let transport = CurlTransport()

  init() throws { directory = try TemporaryDirectory() }

  var partialPath: String { directory.file("partial").path }

  /// Returns the content of the partial file.
  func content() throws -> [UInt8] { Array(try Data(contentsOf: directory.file("partial"))) }

  /// Returns whether no byte of the content was written.
  func isUntouched(_ size: Int) throws -> Bool { try content().prefix(size).allSatisfy { $0 == 0 } }

  /// Returns pseudorandom bytes, the same for each seed.
  static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      withUnsafeBytes(of: state ^ state >> 29) { bytes.append(contentsOf: $0) }
    }
    return Array(bytes.prefix(count))
  }

  /// Enough for every test, made once.
  static let content = bytes(3_000_000)

  static func hash(_ bytes: some Collection<UInt8>) -> ContentHash {
    guard let hash = ContentHash(SHA256.digest(of: Array(bytes))) else {
      preconditionFailure("a digest has 32 bytes")
    }
    return hash
  }

  /// Returns a job for this content, with hashes of chunks or without.
  func job(
    _ content: [UInt8], from url: String, inChunks: Bool, map: ChunkMap? = nil,
    reuse: @escaping @Sendable (ContentHash) async -> LocalChunk? = { _ in nil }
  ) -> DownloadJob {
    let step = Int(Self.chunkSize)
    let starts = inChunks ? Array(stride(from: 0, to: content.count, by: step)) : []
    return DownloadJob(
      source: .url(url), size: Int64(content.count), hash: Self.hash(content),
      chunkSize: Self.chunkSize,
      chunks: starts.map { Self.hash(content[$0..<min($0 + step, content.count)]) },
      partialPath: partialPath, map: map,
      record: { [weak self] map in self?.notes.withLock { $0.recorded.append(map) } },
      reuse: reuse)
  }

  /// Fetches, each silence at most `timeout`; time never passes and waits end at once.
  func download(
    _ job: DownloadJob, attempts: Int = 4, timeout: Duration = .seconds(20),
    _ change: (inout DownloadSettings) -> Void = { _ in }
  ) async throws(DownloadError) -> DownloadOutcome {
    var settings = DownloadSettings()
    settings.wholeBytes = 0
    settings.rangeBytes = 256 << 10
    settings.retry.attemptsMax = attempts
    change(&settings)
    let downloader = ChunkedDownloader(
      settings: settings, surroundings: surroundings(),
      open: ChunkedDownloader.requests(over: transport, server: "", timeout: timeout))
    return try await downloader.download(job) { [weak self] progress in
      self?.notes.withLock { $0.progress.append(progress) }
    }
  }

  /// Returns the error of a download that has to fail.
  func failure(
    _ job: DownloadJob, attempts: Int = 4, timeout: Duration = .seconds(20),
    _ change: (inout DownloadSettings) -> Void = { _ in }
  ) async -> DownloadError? {
    do throws(DownloadError) {
      _ = try await download(job, attempts: attempts, timeout: timeout, change)
      return nil
    } catch {
      return error
    }
  }

  private func surroundings() -> DownloadSurroundings {
    DownloadSurroundings(
      steadyClock: { .zero }, wallClock: { 784_111_777 }, random: { 0 },
      sleep: { [weak self] wait in
        self?.notes.withLock { $0.waits.append(wait) }
        try Task.checkCancellation()
      },
      bootID: { [weak self] in self?.notes.withLock { $0.boot } },
      makeExecutor: { ThreadExecutor(name: $0) })
  }
}

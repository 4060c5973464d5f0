import FerryCryptography
import FerryExecutors
import FerryFiles
import FerryProtocol
import Synchronization

/// Returns the fetched items of composed missions to the mission manager, and fetches lost ones
/// again from their own addresses.
final class StagedDownloader: Downloader {
  /// The source of a content.
  enum Source: Sendable {
    /// A manifest.
    case document([UInt8])
    /// A fetched item.
    case file(StagedFile, OwnItem)
  }

  private let inner: any Downloader
  private let executor: any WorkExecutor
  private let sources = Mutex<[ContentHash: Source]>([:])

  init(_ inner: any Downloader, executor: any WorkExecutor) {
    (self.inner, self.executor) = (inner, executor)
  }

  func set(_ source: Source, of hash: ContentHash) { sources.withLock { $0[hash] = source } }

  func download(
    _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome {
    guard let hash = job.hash, let size = job.size, let source = sources.withLock({ $0[hash] })
    else { throw DownloadError(.server(404), "the item's source is not known any more") }
    do {
      let isThere = try await executor.run { try Self.place(source, job, hash) }
      if isThere {
        progress(DownloadProgress(bytesDone: size, bytesTotal: size, bytesFetched: 0))
        return DownloadOutcome(bytesFetched: 0, bytesReused: size, size: size, hash: hash)
      }
    } catch {
      throw DownloadError(converting: error)
    }
    guard case .file(_, let item) = source else {
      throw DownloadError(.file, "the manifest is not here any more")
    }
    var job = job
    job.source = .request(item.request)
    return try await inner.download(job, progress: progress)
  }

  /// Moves or copies a content to a job's file. Returns true if it is there.
  private static func place(
    _ source: Source, _ job: DownloadJob, _ hash: ContentHash
  ) throws(FileStoreError) -> Bool {
    let target = StagedFile(path: job.partialPath, cipher: job.cipher)
    switch source {
    case .document(let bytes):
      guard ContentHash(SHA256.digest(of: bytes)) == hash else { return false }
      try target.write(bytes)
      return true
    case .file(let file, _):
      if try file.hash() == hash {
        try file.move(to: target)
        return true
      }
      // The process may have been killed after the move.
      return try target.hash() == hash
    }
  }
}

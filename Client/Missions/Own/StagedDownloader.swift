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
  private let system: any FileCalls
  private let sources = Mutex<[ContentHash: Source]>([:])

  init(_ inner: any Downloader, executor: any WorkExecutor, system: any FileCalls) {
    (self.inner, self.executor, self.system) = (inner, executor, system)
  }

  func set(_ source: Source, of hash: ContentHash) { sources.withLock { $0[hash] = source } }

  func download(
    _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome {
    guard let hash = job.hash, let size = job.size, let source = sources.withLock({ $0[hash] })
    else { throw DownloadError(.server(404), "the item's source is not known any more") }
    do {
      let target = StagedFile(path: job.partialPath, seal: job.seal, system: system)
      let isThere = try await executor.run {
        try Self.place(source, in: target, ContentFacts(size: size, hash: hash))
      }
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

  /// Returns no bytes for a fetched item: it is moved.
  func bytesNeeded(for content: StoredContent) async -> Int64 {
    guard case .file(let file, _)? = sources.withLock({ $0[content.hash] }) else {
      return content.size
    }
    let size = try? await executor.run { file.size }
    return size == content.size ? 0 : content.size
  }

  /// Moves or copies a content to a job's file. Returns true if it is there.
  ///
  /// A fetched item was hashed while it was written, and was on the disk before its facts were
  /// recorded. So nothing is read here, except after a process was killed during a move.
  private static func place(
    _ source: Source, in target: StagedFile, _ facts: ContentFacts
  ) throws(FileStoreError) -> Bool {
    switch source {
    case .document(let bytes):
      guard ContentHash(SHA256.digest(of: bytes)) == facts.hash else { return false }
      try target.write(bytes)
      return true
    case .file(let file, _):
      if file.size == facts.size {
        try file.move(to: target.path)
        return true
      }
      guard target.size == facts.size else { return false }
      return try target.facts()?.hash == facts.hash
    }
  }
}

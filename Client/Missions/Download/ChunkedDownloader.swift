import FerryNetworking
import FerryPlatform
import FerryProtocol

/// The built-in downloader. It fetches parallel ranges and checks each chunk as it arrives. After a
/// pause, a lost connection, a kill or a restart of the system it fetches no part twice.
///
/// The two threads, for writes and for the hash of whole files, end with the downloader.
public struct ChunkedDownloader: Downloader {
  let open: DownloadOpening
  let settings: DownloadSettings
  let surroundings: DownloadSurroundings
  let writing: any WorkExecutor
  private let hashing: any WorkExecutor

  /// Creates a downloader that makes requests by `open`.
  public init(settings: DownloadSettings = DownloadSettings(), open: @escaping DownloadOpening) {
    self.init(settings: settings, surroundings: .system, open: open)
  }

  /// Creates a downloader with given surroundings.
  package init(
    settings: DownloadSettings = DownloadSettings(), surroundings: DownloadSurroundings,
    open: @escaping DownloadOpening
  ) {
    self.open = open
    self.settings = settings
    self.surroundings = surroundings
    writing = surroundings.makeExecutor("ferry-download")
    hashing = surroundings.makeExecutor("ferry-hash")
  }

  public func download(
    _ job: DownloadJob, progress: @escaping @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome {
    guard job.source.isFile, let size = job.size, job.hash != nil || !job.chunks.isEmpty else {
      return try await downloadUnknown(job, progress: progress)
    }
    try check(size, job)
    return try await download(job, size: size, open: open, progress: progress)
  }

  /// Fetches a file of this size with requests by `open`.
  func download(
    _ job: DownloadJob, size: Int64, open: @escaping DownloadOpening,
    progress: @escaping @Sendable (DownloadProgress) -> Void
  ) async throws(DownloadError) -> DownloadOutcome {
    let layout = PartialLayout(job, size: size, marksFrom: settings.marksFrom)
    let file = PartialFile(
      path: job.partialPath, layout: layout, seal: job.seal, executor: writing,
      system: surroundings.files)
    let session = DownloadSession(
      job, size: size, file: file, layout: layout, settings: settings, surroundings: surroundings,
      tell: progress)
    do throws(DownloadError) {
      try await session.restore()
      try await job.reserve(size - session.reused)
      try await fetch(session, open)
      try await file.finish(isDurable: settings.endsDurable)
    } catch {
      let error = Task.isCancelled ? .cancelled : error
      await session.reportEnd()
      await session.recordVerified(after: error)
      throw error
    }
    let facts = await session.facts
    return DownloadOutcome(
      bytesFetched: await session.fetched, bytesReused: await session.reused, size: size,
      hash: job.hash ?? facts?.hash, parts: facts?.parts ?? [])
  }

  /// Fetches missing parts, and again parts found wrong by the check of the whole.
  private func fetch(
    _ session: DownloadSession, _ open: @escaping DownloadOpening
  ) async throws(DownloadError) {
    let checksWhole = settings.checksWhole && session.checksChunks || session.size == 0
    for _ in 0..<ChunkPlan.Bounds().tries {
      let whole =
        checksWhole
        ? WholeHash(
          path: session.job.partialPath, format: await session.file.format, executor: hashing,
          system: surroundings.files) : nil
      try await fetchMissing(session, whole, open)
      guard let whole else { return }
      if await session.accepts(whole: await whole.finish()) { return }
      guard try await session.recheck() else { break }
    }
    throw DownloadError(
      .wrongContent(chunk: nil), "the file's SHA-256 differs from the manifest")
  }

  private func fetchMissing(
    _ session: DownloadSession, _ whole: WholeHash?, _ open: @escaping DownloadOpening
  ) async throws(DownloadError) {
    let connection = RangeFetch(session: session, open: open, retry: settings.retry)
    let connections = min(settings.connections, max(1, await session.plan.missing.count))
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<max(1, connections) { group.addTask { await connection.run() } }
      group.addTask { await session.recordMap() }
      if let whole { group.addTask { await session.hash(whole) } }
      while await group.next() != nil {
        if await session.failure != nil { group.cancelAll() }
      }
    }
    if let failure = await session.failure { throw failure }
  }
}

extension DownloadSession {
  /// Records the map whenever it is due, beside the transfers.
  fileprivate func recordMap() async {
    while await waitForRecord() {
      do throws(DownloadError) { try await record() } catch { fail(error) }
    }
  }

  /// Hashes the fetched part from the start, beside the transfers.
  fileprivate func hash(_ whole: WholeHash) async {
    var position: Int64 = 0
    do throws(DownloadError) {
      while let front = await front(beyond: position) {
        try await whole.advance(to: front)
        if Task.isCancelled { throw .cancelled }
        position = front
      }
    } catch {
      fail(error)
    }
  }

  /// Returns true if the whole file has the right hash, or any hash is accepted.
  fileprivate func accepts(whole digest: [UInt8]?) -> Bool {
    guard let hash = digest.flatMap({ ContentHash($0) }) else { return false }
    facts = ContentFacts(size: size, hash: hash)
    return job.hash == nil || job.hash == hash
  }

  /// Records the verified chunks for the next attempt; it trusts their hashes. A file without
  /// chunks has marks instead: waiting for the disk would delay a pause.
  fileprivate func recordVerified(after error: DownloadError) async {
    guard checksChunks, layout.hasMarks || map.present > 0 else { return }
    // Report the error that ended the download, not this one.
    try? await job.record(map)
  }
}

extension PartialLayout {
  /// Creates the layout of a job's file; it is one chunk if only the whole hash is known.
  init(_ job: DownloadJob, size: Int64, marksFrom: Int64) {
    let chunkSize = max(1, job.chunks.isEmpty ? size : job.chunkSize)
    let parts = Int(size / chunkSize) + (size % chunkSize > 0 ? 1 : 0)
    precondition(job.chunks.isEmpty || job.chunks.count == parts, "chunks do not fit the file")
    self.init(
      size: size, chunkSize: chunkSize, chunkCount: parts, marksFrom: marksFrom,
      isSealed: job.seal != nil)
  }
}

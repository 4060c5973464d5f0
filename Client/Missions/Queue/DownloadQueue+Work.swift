import FerryProtocol
import Foundation

/// The work on one download, until the file is at the final path.
extension DownloadQueue {
  /// Fetches a download. Returns the result.
  func work(_ download: Download) async -> DownloadJobQueue.Ending {
    do throws(DownloadError) {
      let lock = try await store.perform {
        try NamedFile.lock("\(download.partialPath).lock")
      }
      guard let lock else {
        throw DownloadError(.busy, "another queue downloads to \(download.path)")
      }
      defer { lock.release() }
      if let file = try await fetched(download) {
        try await place(file, download)
      } else {
        let file = try await fetch(download)
        // A process killed from here on finds the file at one of the two paths.
        try await store.set(file: file, of: download.id)
        try await place(file, download)
      }
      (failures[download.id], highest[download.id]) = (nil, nil)
      return .done
    } catch {
      return ending(of: error, download.id)
    }
  }

  private func ending(of error: DownloadError, _ id: DownloadID) -> DownloadJobQueue.Ending {
    if Task.isCancelled || error.kind == .cancelled { return .stopped }
    // The user can solve a problem on this device, or get access.
    switch error.kind {
    case .diskFull, .file, .server(401), .server(403), .server(407): return .paused(error)
    default: break
    }
    guard error.isTransient else { return .failed(error) }
    let count = (failures[id] ?? 0) + 1
    failures[id] = count
    if let most = options.pauses.attemptsMax, count >= most { return .failed(error) }
    return .rests(error)
  }

  /// Returns the file of a download, if an earlier process fetched the content completely.
  private func fetched(_ download: Download) async throws(DownloadError) -> DownloadedFile? {
    guard let file = try await store.file(of: download.id) else { return nil }
    let (partial, path) = (download.partialPath, download.path)
    let expected = rules.seal == nil ? file.size : ContentSeal.fileSize(file.size)
    let isThere = try await store.perform {
      let size = NamedFile.size(of: partial)
      return size == expected || size == nil && NamedFile.size(of: path) == expected
    }
    if isThere { return file }
    try await store.set(file: nil, of: download.id)
    return nil
  }

  private func fetch(_ download: Download) async throws(DownloadError) -> DownloadedFile {
    let id = download.id
    var job = DownloadJob(
      source: download.request.isAddress ? .url(download.url) : .request(download.request),
      size: download.size, hash: download.hash, chunkSize: max(1, download.size ?? 1),
      partialPath: download.partialPath, map: try await store.map(of: id),
      record: { [store] map in try await store.set(map, download.status.progress, of: id) })
    job.sizeMax = download.sizeMax
    job.seal = rules.seal
    job.partSize = rules.partSize
    job.reserve = { [self] (bytes) async throws(DownloadError) in
      try await reserve(bytes, for: download)
    }
    let clock = surroundings.steadyClock
    let before = download.status.progress.bytesFetched
    do throws(DownloadError) {
      let outcome = try await downloader.download(job) { progress in
        var progress = progress
        progress.bytesFetched += before
        download.set(progress, at: clock())
      }
      var file = DownloadedFile(path: download.path, size: outcome.size, hash: outcome.hash)
      file.parts = outcome.parts
      return file
    } catch {
      // An attempt that enlarged the file was no failure in a row. One that fetched the same part
      // again was: otherwise a server that always breaks off would be asked without a pause for
      // ever.
      let bytes = download.status.progress.bytesDone
      if bytes > highest[id] ?? 0 {
        failures[id] = nil
        highest[id] = bytes
      }
      throw error
    }
  }

  /// Reserves space for the missing bytes of a download, beside those of all others under way.
  private func reserve(_ bytes: Int64, for download: Download) async throws(DownloadError) {
    guard let freeBytes = rules.freeBytes else { return }
    let free = try await freeBytes()
    for id in space.owners where id != download.id {
      guard let other = self.download(id)?.status.progress, let total = other.bytesTotal else {
        continue
      }
      space.wrote(id, missing: total - other.bytesDone)
    }
    do throws(SpaceShortage) {
      try space.reserve([download.id: bytes], for: download.id, free: free)
    } catch {
      throw DownloadError(.diskFull, error.message)
    }
  }

  /// Returns the queue's job of a row.
  nonisolated func job(_ row: DownloadRow) -> DownloadJobQueue.Job {
    DownloadJobQueue.Job(row, group: rules.group(row.id))
  }

  /// Gives the fetched file the final name, for good.
  private func place(
    _ file: DownloadedFile, _ download: Download
  ) async throws(DownloadError) {
    let (partial, path) = (download.partialPath, download.path)
    try await store.perform { try NamedFile.move(partial, to: path) }
    download.set(file: file)
    download.set(
      DownloadProgress(
        bytesDone: file.size, bytesTotal: file.size,
        bytesFetched: download.status.progress.bytesFetched), at: surroundings.steadyClock(),
      isComplete: true)
  }

  /// Stores the facts about a complete file.
  func record(_ facts: ContentFacts, of download: Download) async throws(DownloadError) {
    var file = DownloadedFile(path: download.path, size: facts.size, hash: facts.hash)
    file.parts = facts.parts
    try await store.set(file: file, of: download.id)
    download.set(file: file)
  }

  /// Removes a file, if it exists.
  func remove(_ path: String) async throws(DownloadError) {
    try await store.perform { try NamedFile.remove(path) }
  }
}

extension ContentRequest {
  /// True if the request has nothing but an address.
  fileprivate var isAddress: Bool { isPlain && headers.isEmpty }
}

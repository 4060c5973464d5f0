import FerryPlatform
import FerryProtocol
import Synchronization

/// Concurrent downloads of a mission's items.
extension MissionManager {
  /// Ensures that the content of all items is here; the first failure ends it.
  func fetchItems(
    of manifest: MissionManifest, _ row: MissionRow, _ board: ProgressBoard
  ) async throws(MissionError) {
    var items = JobQueue<ItemJobs>(limit: options.itemsAtOnce)
    var sharers: [ContentHash: [Int]] = [:]
    for (place, item) in manifest.items.enumerated() { sharers[item.hash, default: []] += [place] }
    var failure: MissionError?
    await withTaskGroup(of: (Int, MissionError?).self) { group in
      var effects = items.add(manifest.items)
      while true {
        for case .start(let place) in effects {
          let item = manifest.items[place]
          board.begin(place, item, sharers: sharers[item.hash]?.count ?? 1)
          group.addTask { (place, await self.failure(of: item, at: place, in: manifest, row)) }
        }
        guard let (place, error) = await group.next() else { break }
        effects = []
        if let error {
          if failure == nil { failure = error }
          group.cancelAll()
          continue
        }
        board.finish(place)
        space.wrote(manifest.items[place].hash, missing: 0)
        let same = sharers[manifest.items[place].hash] ?? [place]
        for shared in same {
          hub.notify(.item(manifest.id, path: manifest.items[shared].path))
        }
        let next = items.finish(place, others: same.filter { $0 != place })
        if failure == nil { effects = next }
      }
    }
    if let failure { throw failure }
    guard items.isDone else { throw MissionError(.cancelled, "it was stopped") }
  }

  private func failure(
    of item: MissionItem, at place: Int, in manifest: MissionManifest, _ row: MissionRow
  ) async -> MissionError? {
    do throws(MissionError) {
      try await fetch(item, at: place, of: manifest, row)
      return nil
    } catch {
      return error
    }
  }

  /// Ensures that an item's content is here and right. If the item belongs to a run, it waits while
  /// there is no connection.
  func fetch(
    _ item: MissionItem, at place: Int?, of manifest: MissionManifest, _ row: MissionRow
  ) async throws(MissionError) {
    do throws(MissionError) {
      let content = StoredContent(hash: item.hash, size: item.size)
      let lock = try await contents.lock(item.hash)
      defer { lock.release() }
      if let object = try await contents.intact(content, since: row.askedAt) {
        return try await contents.record(object, item, manifest)
      }
      try await contents.reuseSealed(item, manifest.chunkSize)
      let job = contents.job(
        try await origin.source(of: item, in: manifest), hash: item.hash, size: item.size,
        chunkSize: item.chunks.isEmpty ? max(1, item.size) : manifest.chunkSize,
        chunks: item.chunks)
      try await transfer(
        job, item.hash, of: manifest.id, item: item.path, place: place, isPatient: place != nil)
      try await contents.adopt(item, manifest)
    } catch {
      throw MissionError(error.kind, item: item.path, error.message)
    }
  }

  /// Fetches the file with a hash.
  ///
  /// - Parameter isPatient: true to retry without end while there is no connection.
  func transfer(
    _ job: DownloadJob, _ hash: ContentHash, of id: MissionID, item: String?, place: Int?,
    isPatient: Bool = true
  ) async throws(MissionError) {
    var job = job
    job.stalled = { [self, source = job.source] failure in
      await stall(id, MissionError(failure, of: source), item)
    }
    let board = downloads[id]?.board
    // The failures since the file last grew. A server that always breaks off at the same byte
    // fails, although it sends something.
    var failures = 0
    var highest: Int64 = 0
    while true {
      job.map = try await contents.chunkMap(of: hash, chunkCount: job.chunks.count)
      let came = Mutex<Int64>(0)
      let failure: DownloadError
      do throws(DownloadError) {
        _ = try await downloader.download(job) { progress in
          came.withLock { $0 = max($0, progress.bytesDone) }
          if let place { board?.update(place, progress) }
        }
        return await goesOn(id)
      } catch {
        failure = error
      }
      if let place { board?.attemptEnded(place) }
      guard failure.isTransient, isPatient, !Task.isCancelled else {
        throw MissionError(failure, of: job.source)
      }
      let bytes = came.withLock { $0 }
      failures = bytes > highest ? 1 : failures + 1
      highest = max(highest, bytes)
      await stall(id, MissionError(failure, of: job.source), item)
      let pause = options.pauses.delay(afterFailures: failures, random: surroundings.random())
      guard let pause else { throw MissionError(failure, of: job.source) }
      try await surroundings.rest(pause)
    }
  }

  /// Records that a mission's download has stalled.
  private func stall(_ id: MissionID, _ reason: MissionError, _ item: String?) async {
    let fetched = downloads[id]?.board?.progress().bytesFetched ?? 0
    if isRunning(id) { downloads[id, default: Transfer()].stalledAt = fetched }
    await handle(.stalled(id, MissionError(.offline, item: item, reason.message)))
  }
}

extension MissionError {
  /// Creates an error for a file that could not be fetched. It names an address elsewhere, because
  /// the space's own server cannot help with it.
  init(_ error: DownloadError, of source: DownloadSource?) {
    let kind: Kind =
      switch error.kind {
      case .offline, .changed: .offline
      case .server(401), .server(403), .server(407): .forbidden
      case .server, .wrongAnswer: error.isTransient ? .offline : .refused
      case .wrongContent: .wrongContent
      case .diskFull: .diskFull
      case .file: .files
      case .cancelled: .cancelled
      case .waiting: .waiting
      case .dependency: .dependency
      case .busy: .busy
      }
    var message = error.message
    let address: String? =
      switch source {
      case .url(let url), .published(let url): url
      case .blob, .request, nil: nil
      }
    if let url = address, case .server = error.kind {
      let authority = url.words(at: "/").dropFirst().first
      let host = authority?.words(at: "@").last ?? "elsewhere"
      message = "\(host): \(message)"
    }
    self.init(kind, message)
  }
}

import FerryPlatform
import FerryProtocol
import Synchronization

/// Concurrent downloads of a mission's items.
extension MissionManager {
  /// Content of this size is written to the disk when it is complete, smaller content with the
  /// rest.
  private static let largeBytes: Int64 = 1 << 20

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
      let lock = try await contentLock(item.hash)
      defer { lock.release() }
      if let object = try await intact(content, since: row.askedAt) {
        return try await record(object, item, manifest)
      }
      let chunks = item.chunks
      if files.isSealed { try await reuseSealed(item, manifest.chunkSize) }
      let job = DownloadJob(
        source: try await source(of: item, in: manifest), size: item.size, hash: item.hash,
        chunkSize: chunks.isEmpty ? max(1, item.size) : manifest.chunkSize,
        chunks: chunks, partialPath: files.partialPath(of: item.hash))
      try await transfer(
        job, item.hash, of: manifest.id, item: item.path, place: place, isPatient: place != nil)
      try await adopt(item, manifest)
    } catch {
      throw MissionError(error.kind, item: item.path, error.message)
    }
  }

  /// Adds the complete partial file of an item to the content.
  func adopt(_ item: MissionItem, _ manifest: MissionManifest) async throws(MissionError) {
    let content = StoredContent(hash: item.hash, size: item.size)
    try await files.adopt(content)
    let isLarge = item.size >= Self.largeBytes
    if isLarge { try await files.sync([item.hash]) }
    let object = ObjectRow(content: content, isDurable: isLarge, at: surroundings.wallClock())
    try await record(object, item, manifest)
  }

  func record(
    _ object: ObjectRow, _ item: MissionItem, _ manifest: MissionManifest
  ) async throws(MissionError) {
    try await store.addObject(
      object, chunkSize: manifest.chunkSize, chunks: item.chunks,
      path: files.plainPath(of: item.hash))
  }

  /// Returns complete local content, or `nil`. Content written to the disk by this mission is
  /// trusted; all other content is read again. Damaged content is removed.
  func intact(
    _ content: StoredContent, since askedAt: Int64
  ) async throws(MissionError) -> ObjectRow? {
    let known = try await store.object(content.hash)
    guard try await files.has(content) else { return nil }
    if let known, known.isDurable, known.at >= askedAt { return known }
    if try await files.isIntact(content) {
      return known ?? ObjectRow(content: content, isDurable: false, at: surroundings.wallClock())
    }
    try await store.removeObject(content.hash)
    try await files.removeObject(content.hash)
    return nil
  }

  /// Copies chunks from sealed content; the downloader cannot read it.
  private func reuseSealed(_ item: MissionItem, _ chunkSize: Int64) async throws(MissionError) {
    var map =
      try await store.chunkMap(of: item.hash, chunkCount: item.chunks.count)
      ?? ChunkMap(chunkCount: item.chunks.count)
    var isChanged = false
    for (index, chunk) in item.chunks.enumerated() where !map[index] {
      guard let part = try await store.part(chunk) else { continue }
      let target = StoredContent(hash: item.hash, size: item.size)
      if try await files.copy(part, to: target, at: Int64(index) * chunkSize) {
        map[index] = true
        isChanged = true
      }
    }
    if isChanged { try await store.setChunkMap(map, of: item.hash) }
  }

  /// Fetches the file with a hash.
  ///
  /// - Parameter isPatient: true to retry without end while there is no connection.
  func transfer(
    _ job: DownloadJob, _ hash: ContentHash, of id: MissionID, item: String?, place: Int?,
    isPatient: Bool = true
  ) async throws(MissionError) {
    var job = job
    let (store, files) = (store, files)
    job.seal = files.seal
    job.record = { map in try await store.setChunkMap(map, of: hash) }
    job.reuse = { chunk in
      guard let part = try? await store.part(chunk), part.content.hash != hash,
        let path = files.plainPath(of: part.content.hash)
      else { return nil }
      return LocalChunk(path: path, offset: part.offset, length: part.length)
    }
    job.stalled = { [self, source = job.source] failure in
      await stall(id, MissionError(failure, of: source), item)
    }
    let board = downloads[id]?.board
    // The failures since the file last grew. A server that always breaks off at the same byte
    // fails, although it sends something.
    var failures = 0
    var highest: Int64 = 0
    while true {
      job.map =
        try await store.chunkMap(of: hash, chunkCount: job.chunks.count)
        ?? ChunkMap(chunkCount: job.chunks.count)
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
      try await rest(pause)
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

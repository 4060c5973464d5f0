import FerryProtocol

/// The content of items on this device: complete files, each with a row after a check.
struct StoredContents: Sendable {
  /// Content of this size is written to the disk when it is complete, smaller content with the
  /// rest.
  private static let largeBytes: Int64 = 1 << 20

  let store: any MissionStore
  let files: any MissionFiles
  let surroundings: MissionSurroundings

  /// Waits for a content's lock: the owner fetches the same content.
  func lock(_ hash: ContentHash) async throws(MissionError) -> FileLock {
    try await surroundings.lock(.content(hash), of: files)
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
    try await remove(content.hash)
    return nil
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

  /// Adds the row of an item's content.
  func record(
    _ object: ObjectRow, _ item: MissionItem, _ manifest: MissionManifest
  ) async throws(MissionError) {
    try await store.addObject(
      object, chunkSize: manifest.chunkSize, chunks: item.chunks,
      path: files.plainPath(of: item.hash))
  }

  /// Removes the row of a content and then the file.
  func remove(_ hash: ContentHash) async throws(MissionError) {
    try await store.removeObject(hash)
    try await files.removeObject(hash)
  }

  /// Returns the stored chunks of a file, complete or partial.
  func chunkMap(
    of hash: ContentHash, chunkCount: Int
  ) async throws(MissionError) -> ChunkMap {
    try await store.chunkMap(of: hash, chunkCount: chunkCount) ?? ChunkMap(chunkCount: chunkCount)
  }

  /// Copies chunks of an item from sealed content; the downloader cannot read it.
  func reuseSealed(_ item: MissionItem, _ chunkSize: Int64) async throws(MissionError) {
    guard files.isSealed else { return }
    var map = try await chunkMap(of: item.hash, chunkCount: item.chunks.count)
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

  /// Returns a download of the file with a hash, which finds other local content of the same
  /// chunks.
  func job(
    _ source: DownloadSource, hash: ContentHash, size: Int64, chunkSize: Int64,
    chunks: [ContentHash] = []
  ) -> DownloadJob {
    var job = DownloadJob(
      source: source, size: size, hash: hash, chunkSize: chunkSize, chunks: chunks,
      partialPath: files.partialPath(of: hash))
    job.seal = files.seal
    job.record = { [store] map in try await store.setChunkMap(map, of: hash) }
    job.reuse = { [store, files] chunk in
      guard let part = try? await store.part(chunk), part.content.hash != hash,
        let path = files.plainPath(of: part.content.hash)
      else { return nil }
      return LocalChunk(path: path, offset: part.offset, length: part.length)
    }
    return job
  }

  /// Opens a content for reading, sealed or not.
  func open(_ content: StoredContent) async throws(MissionError) -> MissionContent {
    let (size, chunks) = try await store.chunks(of: content.hash)
    return try await files.open(content, partSize: size, parts: chunks)
  }

  /// Returns the missing bytes of a version's contents.
  func missing(
    _ manifest: MissionManifest, as version: MissionVersion
  ) async throws(MissionError) -> [ContentHash: Int64] {
    var missing: [ContentHash: Int64] = [:]
    for row in try await store.contents(of: version) where row.object == nil {
      missing[row.content.hash] = row.content.size
    }
    for item in manifest.items where missing[item.hash] != nil && !item.chunks.isEmpty {
      guard let map = try await store.chunkMap(of: item.hash, chunkCount: item.chunks.count) else {
        continue
      }
      let left = max(0, item.size - Int64(map.present) * manifest.chunkSize)
      missing[item.hash] = min(missing[item.hash] ?? left, left)
    }
    return missing
  }
}

extension MissionSurroundings {
  /// The interval between checks of another process's work on a mission.
  static let watchPause: Duration = .milliseconds(100)

  /// Pauses.
  ///
  /// - Throws: ``MissionError/Kind/cancelled``.
  func rest(_ duration: Duration) async throws(MissionError) {
    do { try await sleep(duration) } catch {
      throw MissionError(.cancelled, "it was stopped")
    }
  }

  /// Waits for a lock.
  func lock(
    _ name: LockName, of files: any MissionFiles
  ) async throws(MissionError) -> FileLock {
    while true {
      if let lock = try files.lock(name) { return lock }
      try await rest(Self.watchPause)
    }
  }
}

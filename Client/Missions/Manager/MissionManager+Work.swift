import FerryProtocol
import Synchronization

/// The work on one mission, from the row until it is in use.
extension MissionManager {
  /// The interval between checks of another process's work on a mission.
  static let watchPause: Duration = .milliseconds(100)

  /// Fetches a mission and puts it in use. Returns the result.
  func work(_ id: MissionID) async -> MissionQueue.Ending {
    do throws(MissionError) {
      guard let version = versions[id] else { throw MissionError(.notFound, "it has no row") }
      let (lock, row): (FileLock, MissionRow)
      switch try await acquire(version) {
      case .ours(let ourLock, let ourRow): (lock, row) = (ourLock, ourRow)
      case .ended(let ending): return ending
      }
      defer { lock.release() }
      let watch = Task(executorPreference: surroundings.executor) { await self.watch(version) }
      defer { watch.cancel() }
      let manifest = try await manifest(of: row)
      let board = ProgressBoard(manifest, row, clock: surroundings.steadyClock)
      downloads[id, default: Transfer()].board = board
      try await reserve(manifest, as: row.version)
      try await fetchItems(of: manifest, row, board)
      try await activate(manifest, as: row.version)
      hub.notify(.progress(board.progress()))
      return .done
    } catch {
      if Task.isCancelled || error.kind == .cancelled { return .paused(nil) }
      // The user can solve a problem on this device, and the content is not wrong.
      switch error.kind {
      case .diskFull, .forbidden, .files, .database, .untrustedSigner: return .paused(error)
      default: return .failed(await reason(error, of: id))
      }
    }
  }

  /// Returns why a mission failed: if the server rejects it and the catalogue lacks it, it was
  /// retracted.
  private func reason(_ error: MissionError, of id: MissionID) async -> MissionError {
    guard error.kind == .refused, let published = try? await published(),
      !published.contains(where: { $0.id == id })
    else { return error }
    return MissionError(
      .retracted, item: error.item, "it was retracted during the download: \(error.message)")
  }

  // MARK: Beside other processes

  private enum Turn {
    case ours(FileLock, MissionRow)
    case ended(MissionQueue.Ending)
  }

  /// Waits for the mission's lock. While another process has it, that process fetches and this one
  /// observes; if the other one dies, this one continues the work.
  private func acquire(_ version: MissionVersion) async throws(MissionError) -> Turn {
    var isStalled = false
    while true {
      let lock = try files.lock(.mission(version.mission))
      guard let row = try await row(of: version) else {
        lock?.release()
        return .ended(try await elsewhere(version))
      }
      if row.isComplete || row.state == .paused || row.state == .cancelled {
        lock?.release()
        return .ended(row.isComplete ? .done : .paused(nil))
      }
      if let lock {
        if isStalled { await handle(.goesOn(version.mission)) }
        return .ours(lock, row)
      }
      if !isStalled {
        isStalled = true
        await handle(.stalled(version.mission, MissionError(.busy, "another process fetches it")))
      }
      hub.notify(.progress(MissionProgress(row)))
      try await rest(Self.watchPause * 2)
    }
  }

  /// Returns the result of a mission removed by another process.
  private func elsewhere(
    _ version: MissionVersion
  ) async throws(MissionError) -> MissionQueue.Ending {
    let ending = try await store.endings().first { $0.version == version }
    return .failed(ending?.reason ?? MissionError(.cancelled, "it was removed meanwhile"))
  }

  /// Reports the progress of a mission, and applies changes written into its row by another
  /// process.
  private func watch(_ version: MissionVersion) async {
    let id = version.mission
    var (seen, reported): (Int64?, MissionProgress?) = (nil, nil)
    var isTurn = false
    while !Task.isCancelled, isRunning(id) {
      // A pause should take effect sooner than a report of progress.
      isTurn.toggle()
      if isTurn, let progress = downloads[id]?.board?.progress() {
        if let stalledAt = downloads[id]?.stalledAt,
          progress.bytesFetched - stalledAt >= min(4_096, max(1, progress.bytesTotal / 16))
        {
          await goesOn(id)
        }
        if progress != reported { await report(progress, after: reported, of: version) }
        reported = progress
      }
      if let current = try? await store.dataVersion(), current != seen {
        do throws(MissionError) {
          let row = try await row(of: version)
          seen = current
          // Changes of the row after this run are not requests of the user.
          if !Task.isCancelled { await obey(row, version) }
        } catch {
          // The next round checks it again.
        }
      }
      do throws(MissionError) { try await rest(Self.watchPause / 2) } catch { return }
    }
  }

  /// Reports the progress of a mission. It is stored first, so no later process reports less.
  private func report(
    _ progress: MissionProgress, after last: MissionProgress?, of version: MissionVersion
  ) async {
    if progress.bytesDone != last?.bytesDone || progress.itemsDone != last?.itemsDone {
      try? await store.setProgress(
        bytesDone: progress.bytesDone, itemsDone: progress.itemsDone, of: version)
    }
    // It may have ended meanwhile, with a separate event.
    if !Task.isCancelled { hub.notify(.progress(progress)) }
  }

  /// Applies the changes written into a row by another process: `nil` if another version replaced
  /// it.
  private func obey(_ row: MissionRow?, _ version: MissionVersion) async {
    guard let state = row?.state else { return await handle(.cancel(version.mission, .stopped)) }
    if state == .paused { await handle(.pause(version.mission)) }
    if state == .cancelled { await handle(.cancel(version.mission, .stopped)) }
  }

  func goesOn(_ id: MissionID) async {
    guard downloads[id]?.stalledAt != nil else { return }
    downloads[id]?.stalledAt = nil
    await handle(.goesOn(id))
  }

  // MARK: Manifest and room

  private func manifest(of row: MissionRow) async throws(MissionError) -> MissionManifest {
    let trusted = try await trusted()
    try ManifestCheck.check(signer: row.record.signer, trusted: trusted)
    if let document = try await store.manifest(of: row.version) {
      return try await checked(document, of: row.record)
    }
    let size = row.record.manifestSize
    guard (1...Int64(MissionLimits.standard.manifestBytes)).contains(size) else {
      throw MissionError(.badManifest, "a manifest of \(size) bytes is not allowed")
    }
    let hash = row.record.manifest
    let lock = try await contentLock(hash)
    defer { lock.release() }
    let job = DownloadJob(
      source: .blob(hash), size: size, hash: hash, chunkSize: size,
      partialPath: files.partialPath(of: hash))
    try await transfer(job, hash, of: row.record.id, item: nil, place: nil)
    let document = try await files.partialBytes(of: hash, limit: size)
    let manifest = try await checked(document, of: row.record)
    // Only the first signer is trusted, even if another mission's signer was stored during this
    // download.
    if trusted.isEmpty {
      let first = try await store.trustFirst(row.record.signer, at: surroundings.wallClock())
      try ManifestCheck.check(signer: row.record.signer, trusted: first)
    }
    try await store.setManifest(document, manifest, of: row.version)
    try await store.removeChunkMap(of: hash)
    try await files.removePartial(hash)
    return manifest
  }

  /// Returns the trusted public keys.
  func trusted() async throws(MissionError) -> [[UInt8]] {
    if let signer = options.signer { return [signer] }
    return try await store.signers()
  }

  /// Reserves space for all missing content, beside the needs of other missions; throws if there is
  /// too little.
  private func reserve(
    _ manifest: MissionManifest, as version: MissionVersion
  ) async throws(MissionError) {
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
    let free = try await files.freeBytes()
    do throws(SpaceShortage) {
      try space.reserve(missing, for: manifest.id, free: free)
    } catch {
      throw MissionError(.diskFull, error.message)
    }
  }

  // MARK: The end

  /// Completes a mission with all items: checks it, writes it to the disk, and puts it in use.
  func activate(
    _ manifest: MissionManifest, as version: MissionVersion
  ) async throws(MissionError) {
    let contents = try await store.contents(of: version)
    for row in contents {
      guard row.object != nil, try await files.has(row.content) else {
        throw MissionError(.damaged, "content \(row.content.hash) is missing")
      }
    }
    try await files.sync(contents.filter { $0.object?.isDurable == false }.map(\.content.hash))
    if Task.isCancelled { throw MissionError(.cancelled, "it was stopped") }
    try await files.build(BundlePlan(manifest, as: version))
    try await store.complete(version, at: surroundings.wallClock())
    try await removeOutdated(version)
  }

  private func removeOutdated(_ active: MissionVersion) async throws(MissionError) {
    let complete = try await store.missions()
      .filter { $0.record.id == active.mission && $0.isComplete }
      .sorted { ($0.activation ?? 0) < ($1.activation ?? 0) }.map(\.version.version)
    let outdated = KeepingPlan.outdated(
      complete, active: active.version, keep: options.versionsKept)
    for version in outdated { try await remove(MissionVersion(active.mission, version)) }
  }

  // MARK: Small things

  /// Waits for a content's lock: the owner fetches the same content.
  func contentLock(_ hash: ContentHash) async throws(MissionError) -> FileLock {
    while true {
      if let lock = try files.lock(.content(hash)) { return lock }
      try await rest(Self.watchPause)
    }
  }

  func row(of version: MissionVersion) async throws(MissionError) -> MissionRow? {
    try await store.missions().first { $0.version == version }
  }

  func rest(_ duration: Duration) async throws(MissionError) {
    do { try await surroundings.sleep(duration) } catch {
      throw MissionError(.cancelled, "it was stopped")
    }
  }
}

extension BundlePlan {
  /// Creates the folder's plan for a manifest's version, by the local name.
  init(_ manifest: MissionManifest, as version: MissionVersion) {
    self.init(
      mission: version.mission, version: version.version,
      files: manifest.items.map {
        File(path: $0.path, content: StoredContent(hash: $0.hash, size: $0.size))
      })
  }
}

extension MissionProgress {
  /// Creates the progress of a mission fetched by another process.
  fileprivate init(_ row: MissionRow) {
    self.init(
      id: row.record.id, version: row.record.version, bytesDone: row.bytesDone,
      bytesTotal: row.record.size, itemsDone: row.itemsDone, items: row.record.items,
      bytesFetched: 0)
  }
}

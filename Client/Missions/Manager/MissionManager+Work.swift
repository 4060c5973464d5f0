import FerryProtocol
import Synchronization

/// The work on one mission, from the row until it is in use.
extension MissionManager {
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
      try await stored.activate(manifest, as: row.version)
      hub.notify(.progress(board.progress()))
      return .done
    } catch {
      if Task.isCancelled || error.kind == .cancelled { return .paused(nil) }
      // The user can solve a problem on this device, and the content is not wrong.
      switch error.kind {
      case .diskFull, .forbidden, .files, .database, .untrustedSigner: return .paused(error)
      default: return .failed(await origin.reason(of: error, in: id))
      }
    }
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
      guard let row = try await stored.row(of: version) else {
        lock?.release()
        return .ended(try await stored.ending(of: version))
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
      try await surroundings.rest(MissionSurroundings.watchPause * 2)
    }
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
          let row = try await stored.row(of: version)
          seen = current
          // Changes of the row after this run are not requests of the user.
          if !Task.isCancelled { await obey(row, version) }
        } catch {
          // The next round checks it again.
        }
      }
      do throws(MissionError) {
        try await surroundings.rest(MissionSurroundings.watchPause / 2)
      } catch { return }
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
    let trusted = try await stored.trusted()
    try ManifestCheck.check(signer: row.record.signer, trusted: trusted)
    if let document = try await store.manifest(of: row.version) {
      return try await origin.checked(document, of: row.record)
    }
    let size = row.record.manifestSize
    guard (1...Int64(MissionLimits.standard.manifestBytes)).contains(size) else {
      throw MissionError(.badManifest, "a manifest of \(size) bytes is not allowed")
    }
    let hash = row.record.manifest
    let lock = try await contents.lock(hash)
    defer { lock.release() }
    let job = contents.job(.blob(hash), hash: hash, size: size, chunkSize: size)
    try await transfer(job, hash, of: row.record.id, item: nil, place: nil)
    let document = try await files.partialBytes(of: hash, limit: size)
    let manifest = try await origin.checked(document, of: row.record)
    try await stored.accept(document, manifest, of: row, isFirst: trusted.isEmpty)
    return manifest
  }

  /// Reserves space for all missing content, beside the needs of other missions; throws if there is
  /// too little.
  private func reserve(
    _ manifest: MissionManifest, as version: MissionVersion
  ) async throws(MissionError) {
    let missing = try await contents.missing(manifest, as: version)
    let free = try await files.freeBytes()
    do throws(SpaceShortage) {
      try space.reserve(missing, for: manifest.id, free: free)
    } catch {
      throw MissionError(.diskFull, error.message)
    }
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

import FerryProtocol

/// The list, the checks and the removal of missions.
extension MissionManager {
  // MARK: Looking

  /// Returns every mission that is published, is here, or ended without being here (SPEC.md §21).
  public func list() async throws(MissionError) -> [MissionStatus] {
    var statuses = MissionListing.list(
      catalogue: try await origin.published(), rows: try await store.missions(),
      endings: try await store.endings())
    for index in statuses.indices {
      if let (state, reason) = unwritten[statuses[index].id] {
        (statuses[index].state, statuses[index].reason) = (state, reason)
      }
      markOwner(whoIsAt: &statuses[index])
      guard let progress = downloads[statuses[index].id]?.board?.progress(),
        progress.version == statuses[index].version
      else { continue }
      statuses[index].bytesDone = progress.bytesDone
      statuses[index].itemsDone = progress.itemsDone
    }
    return statuses
  }

  /// Records that another process fetches a mission, or that the process has ended.
  private func markOwner(whoIsAt status: inout MissionStatus) {
    guard status.state == .downloading else { return }
    if let reason = queue[status.id]?.reason, reason.kind == .busy { status.reason = reason }
    guard !isRunning(status.id), queue[status.id]?.state != .downloading,
      let lock = try? files.lock(.mission(status.id))
    else { return }
    lock.release()
    // The reason for an earlier process's wait ended with it.
    (status.isInterrupted, status.reason) = (true, nil)
  }

  /// Returns one mission.
  ///
  /// - Throws: ``MissionError/Kind/notFound``.
  public func mission(_ id: MissionID) async throws(MissionError) -> MissionStatus {
    guard let status = try await list().first(where: { $0.id == id }) else {
      throw MissionError(.notFound, "there is no mission \(id)")
    }
    return status
  }

  /// Returns true if a complete version is here.
  public func isDownloaded(_ id: MissionID) async throws(MissionError) -> Bool {
    try await store.missions().contains { $0.record.id == id && $0.isActive }
  }

  /// Returns the folder of the version in use. It stays unchanged until the version after the next
  /// one is in use. Sealed content has no folder.
  ///
  /// - Throws: ``MissionError/Kind/notFound`` if no complete version is here.
  public func path(_ id: MissionID) async throws(MissionError) -> String {
    let version = try await stored.active(id).version
    guard !files.isSealed else {
      throw MissionError(.wrongKey, "its content is encrypted; read it with content(of:in:)")
    }
    return files.bundlePath(of: id, version: version.version)
  }

  /// Returns the items of the version in use, in the manifest's order.
  public func items(_ id: MissionID) async throws(MissionError) -> [MissionFileRow] {
    try await store.files(of: try await stored.active(id).version)
  }

  /// Returns the manifest of the version in use.
  public func manifest(_ id: MissionID) async throws(MissionError) -> MissionManifest {
    try await stored.manifest(of: try await stored.active(id))
  }

  /// Opens an item of the version in use for reading, sealed or not.
  public func content(
    of path: String, in id: MissionID
  ) async throws(MissionError) -> MissionContent {
    guard let file = try await store.file(path, of: try await stored.active(id).version) else {
      throw MissionError(.notFound, item: path, "mission \(id) has no such item")
    }
    return try await contents.open(file.content)
  }

  /// Returns a mission's content for this address; `nil` if there is none (SPEC.md §21).
  public func item(for url: String) async throws(MissionError) -> PinnedItem? {
    guard let file = try await store.file(url: url) else { return nil }
    let content = try await contents.open(file.content)
    return PinnedItem(
      mediaType: file.mediaType, content: content, path: files.plainPath(of: file.content.hash),
      completedAt: file.completedAt ?? 0)
  }

  /// Returns the trusted public keys of manifests; none before the first mission.
  public func signers() async throws(MissionError) -> [[UInt8]] { try await stored.trusted() }

  /// Trusts this key and no other: 32 bytes of Ed25519. Missions paused because of another key
  /// continue.
  public func trust(_ signer: [UInt8]) async throws(MissionError) {
    guard signer.count == 32 else {
      throw MissionError(.wrongKey, "a public key of Ed25519 has 32 bytes")
    }
    try await store.trust(signer, at: surroundings.wallClock())
    for id in versions.keys.sorted() where queue[id]?.state == .paused {
      if queue[id]?.reason?.kind == .untrustedSigner { await handle(.resume(id)) }
    }
  }

  // MARK: Checking

  /// Reads the whole version in use again (SPEC.md §21).
  ///
  /// - Parameters:
  ///   - isRepaired: true to fetch damaged content again.
  ///   - watching: receives the number of bytes read so far and, before any download, the damage.
  /// - Throws: errors of the download, ``MissionError/Kind/offline`` at once if there is no
  ///   connection; the version in use stays unchanged.
  public func verify(
    _ id: MissionID, repairing isRepaired: Bool = false,
    watching: (@Sendable (MissionVerification) -> Void)? = nil
  ) async throws(MissionError) -> MissionVerification {
    let row = try await stored.active(id)
    let manifest = try await stored.manifest(of: row)
    guard let lock = try files.lock(.mission(id)) else {
      throw MissionError(.busy, "mission \(id) is being fetched")
    }
    defer { lock.release() }
    var check = VersionCheck(row, manifest, in: stored)
    try await check.read(watching: watching)
    if isRepaired, !check.report.isIntact {
      var damaged = check.damaged
      for item in manifest.items where damaged.remove(item.hash) != nil {
        try await contents.remove(item.hash)
        try await fetch(item, at: nil, of: manifest, row)
        try await files.sync([item.hash])
      }
      try await check.repairFolder()
    }
    try await check.record()
    return check.report
  }

  // MARK: Removing

  /// Removes a mission with all versions, and ends the download. Content of other missions stays.
  ///
  /// - Throws: ``MissionError/Kind/busy`` while another process fetches it;
  ///   ``MissionError/Kind/notFound``.
  public func remove(_ id: MissionID) async throws(MissionError) {
    if let state = queue[id]?.state, !state.isFinal { await handle(.cancel(id, .stopped)) }
    while isRunning(id) {
      await change()
      if Task.isCancelled { throw MissionError(.cancelled, "the removal was stopped") }
    }
    try await stored.removeAll(of: id)
    versions[id] = nil
    await handle(.removed(id))
    hub.notify(.removed(id))
  }

  /// Removes the fetched parts of a failed or cancelled version.
  func discard(_ row: MissionRow, as state: MissionState, _ reason: MissionError) async {
    do throws(MissionError) {
      if try await stored.discard(row, as: state, reason) { unwritten[row.record.id] = nil }
    } catch {
      // Files left by a failed removal are garbage; the next process collects it.
      unwritten[row.record.id] = (state, reason)
    }
  }
}

/// Content of a mission, for a cache.
public struct PinnedItem: Sendable {
  /// The media type (RFC 6838).
  public var mediaType: String
  public var content: MissionContent
  /// The path of the file; `nil` if it is sealed.
  public var path: String?
  /// When it was completed, in milliseconds since 1970.
  public var completedAt: Int64
}

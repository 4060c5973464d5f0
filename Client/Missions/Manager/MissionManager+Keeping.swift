import FerryProtocol

/// The list, the checks and the removal of missions.
extension MissionManager {
  // MARK: Looking

  /// Returns every mission that is published, is here, or ended without being here (SPEC.md §21).
  public func list() async throws(MissionError) -> [MissionStatus] {
    var statuses = MissionListing.list(
      catalogue: try await published(), rows: try await store.missions(),
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
    let version = try await active(id).version
    guard !files.isSealed else {
      throw MissionError(.wrongKey, "its content is encrypted; read it with content(of:in:)")
    }
    return files.bundlePath(of: id, version: version.version)
  }

  /// Returns the items of the version in use, in the manifest's order.
  public func items(_ id: MissionID) async throws(MissionError) -> [MissionFileRow] {
    try await store.files(of: try await active(id).version)
  }

  /// Returns the manifest of the version in use.
  public func manifest(_ id: MissionID) async throws(MissionError) -> MissionManifest {
    try await manifest(kept: try await active(id))
  }

  /// Opens an item of the version in use for reading, sealed or not.
  public func content(
    of path: String, in id: MissionID
  ) async throws(MissionError) -> MissionContent {
    guard let file = try await store.file(path, of: try await active(id).version) else {
      throw MissionError(.notFound, item: path, "mission \(id) has no such item")
    }
    return try await open(file.content)
  }

  private func open(_ content: StoredContent) async throws(MissionError) -> MissionContent {
    let (size, chunks) = try await store.chunks(of: content.hash)
    return try await files.open(content, partSize: size, parts: chunks)
  }

  /// Returns a mission's content for this address; `nil` if there is none (SPEC.md §21).
  public func item(for url: String) async throws(MissionError) -> PinnedItem? {
    guard let file = try await store.file(url: url) else { return nil }
    let content = try await open(file.content)
    return PinnedItem(
      mediaType: file.mediaType, content: content, path: files.plainPath(of: file.content.hash),
      completedAt: file.completedAt ?? 0)
  }

  /// Returns the trusted public keys of manifests; none before the first mission.
  public func signers() async throws(MissionError) -> [[UInt8]] { try await trusted() }

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
    let row = try await active(id)
    let manifest = try await manifest(kept: row)
    guard let lock = try files.lock(.mission(id)) else {
      throw MissionError(.busy, "mission \(id) is being fetched")
    }
    defer { lock.release() }
    var report = MissionVerification(version: row.record.version)
    var damaged: Set<ContentHash> = []
    var read: Set<ContentHash> = []
    for item in manifest.items where read.insert(item.hash).inserted {
      if Task.isCancelled { throw MissionError(.cancelled, "the check was stopped") }
      let content = StoredContent(hash: item.hash, size: item.size)
      let isIntact = try await files.isIntact(content) { [report] bytes in
        var soFar = report
        soFar.bytes += bytes
        watching?(soFar)
      }
      if !isIntact { damaged.insert(item.hash) }
      report.bytes += item.size
    }
    report.damaged = manifest.items.filter { damaged.contains($0.hash) }.map(\.path)
    let plan = BundlePlan(manifest, as: row.version)
    report.fault = try await files.fault(in: plan)
    watching?(report)
    guard isRepaired, !report.isIntact else {
      try await record(report, of: row)
      return report
    }
    for item in manifest.items where damaged.remove(item.hash) != nil {
      try await store.removeObject(item.hash)
      try await files.removeObject(item.hash)
      try await fetch(item, at: nil, of: manifest, row)
      try await files.sync([item.hash])
    }
    try await files.repair(plan)
    report.isRepaired = true
    try await record(report, of: row)
    return report
  }

  /// Stores the damage as the version's reason, for a download to repair it; or removes it.
  private func record(
    _ report: MissionVerification, of row: MissionRow
  ) async throws(MissionError) {
    let isSound = report.isIntact || report.isRepaired
    guard isSound == row.isDamaged else { return }
    let item = report.damaged.first ?? report.fault?.item
    let reason = MissionError(
      .damaged, item: item, "its files are missing, or differ from the downloaded ones")
    try await store.setDamage(isSound ? nil : reason, of: row.version)
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
    guard let lock = try files.lock(.mission(id)) else {
      throw MissionError(.busy, "another process is fetching mission \(id)")
    }
    defer { lock.release() }
    let rows = try await store.missions().filter { $0.record.id == id }
    let hasEnded = try await store.endings().contains { $0.version.mission == id }
    guard !rows.isEmpty || hasEnded else {
      throw MissionError(.notFound, "mission \(id) is not stored on this device")
    }
    for row in rows { try await remove(row.version) }
    try await store.forgetEnding(of: id)
    versions[id] = nil
    await handle(.removed(id))
    hub.notify(.removed(id))
  }

  /// Removes a version's rows and then the files.
  func remove(
    _ version: MissionVersion, ending: MissionEnding? = nil
  ) async throws(MissionError) {
    let manifest = try await row(of: version)?.record.manifest
    let orphans = try await store.remove(version, ending: ending)
    try await files.removeBundle(of: version.mission, version: version.version)
    for hash in orphans + [manifest].compactMap({ $0 }) {
      // The owner of the lock fetches it for another mission.
      guard let lock = try files.lock(.content(hash)) else { continue }
      defer { lock.release() }
      // Another mission's manifest may have arrived since the rows went: it needs the same content.
      guard try await store.object(hash) == nil, try await !store.refers(to: hash) else { continue }
      try await files.removeObject(hash)
      try await files.removePartial(hash)
    }
  }

  /// Removes the fetched parts of a failed or cancelled version (SPEC.md §21). If another process
  /// fetches it, this process is notified.
  func discard(
    _ row: MissionRow, as state: MissionState, _ reason: MissionError
  ) async {
    let version = row.version
    let ending = MissionEnding(
      version: version, published: row.record.version, title: row.record.title, state: state,
      reason: reason, at: surroundings.wallClock())
    do throws(MissionError) {
      guard let lock = try files.lock(.mission(version.mission)) else {
        try await store.setState(state, reason: reason, of: version)
        return
      }
      defer { lock.release() }
      guard let found = try await self.row(of: version), !found.isComplete else { return }
      try await remove(version, ending: ending)
      unwritten[version.mission] = nil
    } catch {
      // Files left by a failed removal are garbage; the next process collects it.
      unwritten[version.mission] = (state, reason)
    }
  }

  /// Removes files in the folders that no row refers to.
  func collect() async throws(MissionError) {
    _ = try await files.collect { [store] () throws(MissionError) in try await store.needed() }
  }

  // MARK: Rows

  /// Returns the version in use.
  private func active(_ id: MissionID) async throws(MissionError) -> MissionRow {
    guard let row = try await store.missions().first(where: { $0.record.id == id && $0.isActive })
    else { throw MissionError(.notFound, "mission \(id) was not downloaded") }
    return row
  }

  /// Returns the requested, incomplete version.
  func incomplete(_ id: MissionID) async throws(MissionError) -> MissionRow {
    let rows = try await store.missions().filter { $0.record.id == id }
    if let row = rows.last(where: { !$0.isComplete }) { return row }
    if !rows.isEmpty { throw MissionError(.notFound, "mission \(id) is complete") }
    let ending = try await store.endings().first { $0.version.mission == id }
    throw MissionError(
      .notFound,
      ending.map { "mission \(id) \($0.state == .failed ? "failed" : "was cancelled") already" }
        ?? "mission \(id) was not requested")
  }

  private func manifest(kept row: MissionRow) async throws(MissionError) -> MissionManifest {
    guard let document = try await store.manifest(of: row.version) else {
      throw MissionError(.database, "the manifest of mission \(row.record.id) is missing")
    }
    return try await checked(document, of: row.record)
  }
}

/// The result of a check of a mission.
public struct MissionVerification: Sendable, Equatable {
  public var version: Int64
  /// The bytes read.
  public var bytes: Int64 = 0
  /// Items with missing or damaged content.
  public var damaged: [String] = []
  /// How the folder differs from the manifest.
  public var fault: MissionError?
  /// True if all damage is repaired.
  public var isRepaired = false

  /// True if the check found no damage.
  public var isIntact: Bool { damaged.isEmpty && fault == nil }
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

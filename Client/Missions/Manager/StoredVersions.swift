import FerryProtocol

/// The versions of missions on this device: their rows, manifests and folders, from the request to
/// the removal of the last file.
struct StoredVersions: Sendable {
  let store: any MissionStore
  let files: any MissionFiles
  let origin: MissionOrigin
  let options: MissionOptions
  let surroundings: MissionSurroundings

  // MARK: Rows

  func row(of version: MissionVersion) async throws(MissionError) -> MissionRow? {
    try await store.missions().first { $0.version == version }
  }

  /// Returns the version in use.
  func active(_ id: MissionID) async throws(MissionError) -> MissionRow {
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

  /// Returns the result of a version removed by another process.
  func ending(of version: MissionVersion) async throws(MissionError) -> MissionQueue.Ending {
    let ending = try await store.endings().first { $0.version == version }
    return .failed(ending?.reason ?? MissionError(.cancelled, "it was removed meanwhile"))
  }

  /// Returns the manifest of a version with content.
  func manifest(of row: MissionRow) async throws(MissionError) -> MissionManifest {
    guard let document = try await store.manifest(of: row.version) else {
      throw MissionError(.database, "the manifest of mission \(row.record.id) is missing")
    }
    return try await origin.checked(document, of: row.record)
  }

  /// Stores the checked manifest of a version, and trusts its signer.
  ///
  /// - Parameter isFirst: Whether no signer was trusted before the download.
  func accept(
    _ document: [UInt8], _ manifest: MissionManifest, of row: MissionRow, isFirst: Bool
  ) async throws(MissionError) {
    // Only the first signer is trusted, even if another mission's signer was stored during this
    // download.
    if isFirst {
      let first = try await store.trustFirst(row.record.signer, at: surroundings.wallClock())
      try ManifestCheck.check(signer: row.record.signer, trusted: first)
    }
    try await store.setManifest(document, manifest, of: row.version)
    try await store.removeChunkMap(of: row.record.manifest)
    try await files.removePartial(row.record.manifest)
  }

  /// Returns the trusted public keys.
  func trusted() async throws(MissionError) -> [[UInt8]] {
    if let signer = options.signer { return [signer] }
    return try await store.signers()
  }

  /// Returns the hash of the manifest of a mission's version in use; `nil` if none is here.
  func heldManifest(_ id: MissionID) async throws(MissionError) -> ContentHash? {
    try await store.missions().first { $0.record.id == id && $0.isActive }?.record.manifest
  }

  /// Returns the versions of a bundle with local files.
  func heldBundles(of name: BundleName) async throws(MissionError) -> [BundleKey] {
    try await store.missions().compactMap { row in
      guard row.isActive, let id = BundleID(mission: row.record.id), id.name == name else {
        return nil
      }
      return BundleKey(version: id.version, manifest: row.record.manifest)
    }
  }

  // MARK: Use

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

  // MARK: Removal

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

  /// Removes all versions of a mission.
  ///
  /// - Throws: ``MissionError/Kind/busy`` while another process fetches it;
  ///   ``MissionError/Kind/notFound``.
  func removeAll(of id: MissionID) async throws(MissionError) {
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
  }

  /// Removes the fetched parts of a failed or cancelled version (SPEC.md §21). If another process
  /// fetches it, this process is notified.
  ///
  /// - Returns: Whether the parts are removed, and the ending is recorded.
  func discard(
    _ row: MissionRow, as state: MissionState, _ reason: MissionError
  ) async throws(MissionError) -> Bool {
    let version = row.version
    let ending = MissionEnding(
      version: version, published: row.record.version, title: row.record.title, state: state,
      reason: reason, at: surroundings.wallClock())
    guard let lock = try files.lock(.mission(version.mission)) else {
      try await store.setState(state, reason: reason, of: version)
      return false
    }
    defer { lock.release() }
    guard let found = try await self.row(of: version), !found.isComplete else { return false }
    try await remove(version, ending: ending)
    return true
  }

  /// Removes files in the folders that no row refers to.
  func collect() async throws(MissionError) {
    _ = try await files.collect { [store] () throws(MissionError) in try await store.needed() }
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

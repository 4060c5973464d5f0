import FerryProtocol

/// Missions composed by the app: their manifests are made on this device, after their content is
/// here. A version is in use or absent, as a published one.
struct ComposedVersions: Sendable {
  /// Moves the fetched file of a content to a path. Returns true if it is there.
  typealias Move =
    @Sendable (StoredContent, _ path: String) async throws(MissionError) -> Bool

  let contents: StoredContents
  let versions: StoredVersions

  private var store: any MissionStore { versions.store }
  private var files: any MissionFiles { versions.files }

  /// Puts a composed version in use. A process that is killed meanwhile loses no content: the next
  /// call continues.
  func install(
    _ manifest: MissionManifest, at: Int64, _ move: Move
  ) async throws(MissionError) {
    let document = manifest.encoded()
    let lock = try await lock(manifest.id)
    defer { lock.release() }
    let record = DraftRule.record(of: manifest, document, at: at)
    let row = try await store.add(record, at: versions.surroundings.wallClock())
    if row.isActive { return }
    // From now on the rows protect the moved files.
    try await store.setManifest(document, manifest, of: row.version)
    var placed: Set<ContentHash> = []
    for item in manifest.items where placed.insert(item.hash).inserted {
      if Task.isCancelled { throw MissionError(.cancelled, "it was stopped") }
      try await place(item, of: manifest, row, move)
    }
    try await versions.activate(manifest, as: row.version)
  }

  /// Adds the content of an item to the store. It was hashed while it was written, so nothing is
  /// read here.
  private func place(
    _ item: MissionItem, of manifest: MissionManifest, _ row: MissionRow, _ move: Move
  ) async throws(MissionError) {
    let content = StoredContent(hash: item.hash, size: item.size)
    let lock = try await contents.lock(item.hash)
    defer { lock.release() }
    if let object = try await contents.intact(content, since: row.askedAt) {
      return try await contents.record(object, item, manifest)
    }
    guard try await move(content, files.partialPath(of: item.hash)) else {
      throw MissionError(.damaged, item: item.path, "its fetched content is missing")
    }
    try await contents.adopt(item, manifest)
  }

  /// Returns true if a version of a composed mission is in use.
  func isInUse(_ id: MissionID, _ version: Int64) async throws(MissionError) -> Bool {
    try await store.missions().contains {
      $0.record.id == id && $0.record.version == version && $0.isActive
    }
  }

  /// Removes versions that did not come into use.
  func withdraw(_ isEnded: @Sendable (MissionRecord) -> Bool) async throws(MissionError) {
    for row in try await store.missions() where !row.isComplete && isEnded(row.record) {
      let lock = try await lock(row.record.id)
      defer { lock.release() }
      try await versions.remove(row.version)
    }
  }

  private func lock(_ id: MissionID) async throws(MissionError) -> FileLock {
    try await versions.surroundings.lock(.mission(id), of: files)
  }
}

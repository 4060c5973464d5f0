import FerryCommandLine
import FerryMissionServer
import FerryProtocol
import FerrySyncServer
import Foundation

/// The restoration of a backup into a new store. The calls block: run them on a task where this is
/// permitted.
struct BackupRestorer {
  let place: any BackupPlace
  let store: StoreLocation
  let blobs: String?
  /// The place of the key that signs missions; `nil` for a file beside the content.
  let missionKey: String?
  /// The store elsewhere for the content; `nil` for the directory.
  var content: (any ContentStore)?

  /// Reads the list of a backup's parts.
  ///
  /// - Parameter checksum: the backup's, if the administrator knows it.
  func manifest(checksum: String? = nil) async throws -> BackupManifest {
    guard let bytes = try await reading(BackupManifest.fileName, { try await place.manifest() })
    else {
      throw BackupError(
        what: "\(place.name) is no backup", why: "it has no file \(BackupManifest.fileName)",
        next: "name the place that `ferryd backup` made; a backup that was interrupted has none")
    }
    if let checksum, checksum != BackupManifest.checksum(of: Data(bytes)) {
      throw damaged("its checksum is another one: it was changed, or is another backup")
    }
    let manifest: BackupManifest
    do { manifest = try JSONDecoder().decode(BackupManifest.self, from: bytes) } catch {
      throw damaged("its file \(BackupManifest.fileName) cannot be read: \(error)")
    }
    if let fault = manifest.fault { throw damaged(fault) }
    return manifest
  }

  /// Checks all parts, and then brings them back: content first, the store last.
  func run(_ manifest: BackupManifest, progress: (Int64) -> Void) async throws {
    try await check(manifest, progress)
    switch (manifest.store, store) {
    case (.embedded, .embedded(let directory)):
      guard !store.exists else { throw occupied("\(directory) has a store") }
      // SQLite would apply the log of another file to the restored one.
      for log in ["-wal", "-journal"].map({ SQLiteStore.fileName + $0 })
      where FileManager.default.fileExists(atPath: directory + "/" + log) {
        throw occupied("\(directory) has \(log), a part of another store")
      }
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      try await restoreContent(manifest)
      let draft = directory + "/" + SQLiteStore.fileName + ".restoring"
      try await copyPart(manifest.store.fileName, manifest.storeFile, to: draft)
      let target = directory + "/" + SQLiteStore.fileName
      guard renamex(draft, target) else { throw BlobError(target, code: errno) }
      try BackupFile.sync(directory)
    case (.postgres, .postgres(let addresses)):
      let archive = PostgresArchive(url: addresses.direct ?? addresses.main)
      try archive.checkIsEmpty()
      try await restoreContent(manifest)
      let copy = try await place.file(of: manifest.store.fileName, manifest.storeFile)
      try archive.restore(from: try BackupFile.open(copy))
    case (.embedded, .postgres), (.postgres, .embedded):
      throw BackupError(
        what: "the backup does not fit this store",
        why:
          "it is of \(manifest.store == .embedded ? "an embedded store" : "a PostgreSQL database")",
        next: manifest.store == .embedded
          ? "give --data DIR instead of --database" : "give --database URL instead of --data")
    }
  }

  /// Reads all parts, and compares their hashes. Nothing is changed.
  func check(_ manifest: BackupManifest, _ progress: (Int64) -> Void) async throws {
    var named = [(manifest.store.fileName, manifest.storeFile)]
    if let key = manifest.missionKey { named.append((BackupManifest.keyName, key)) }
    var done: Int64 = 0
    for (name, part) in named {
      let found = try await reading(name) { try await place.found(name, size: part.size) }
      guard let found else { throw damaged("\(name) is missing") }
      guard found == part else { throw damaged("\(name) is not as it was backed up") }
      done += part.size
      progress(done)
    }
    if manifest.content.isEmpty { return }
    let content = try await reading("the content") { try place.content() }
    for digest in manifest.contentDigests {
      let name = "the content \(digest.hash)"
      let isIntact = try await reading(name) { try await content.isIntact(digest.hash) { _ in } }
      guard let isIntact else { throw damaged("\(name) is missing") }
      guard isIntact else { throw damaged("\(name) is not as it was backed up") }
      done += digest.size
      progress(done)
    }
  }

  /// Reports an unreadable file as damage of the backup.
  private func reading<T>(_ name: String, _ body: () async throws -> T) async throws -> T {
    do {
      return try await body()
    } catch let error as BlobError {
      switch error {
      case .remote, .cancelled: throw error
      default: throw damaged("\(name): \(error)")
      }
    }
  }

  /// Copies a part to a file for this user alone. The copy is checked again: the place may have
  /// changed since the first check.
  private func copyPart(
    _ name: String, _ part: BackupManifest.Part, to path: String
  ) async throws {
    try? FileManager.default.removeItem(atPath: path)
    let source = try await place.file(of: name, part)
    let copied = try await reading(name) { try BackupFile.copy(source, to: path) }
    guard copied == part else {
      try? FileManager.default.removeItem(atPath: path)
      throw damaged("\(name) changed while it was read")
    }
  }

  private func restoreContent(_ manifest: BackupManifest) async throws {
    if manifest.content.isEmpty, manifest.missionKey == nil { return }
    guard let blobs else {
      throw BackupError(
        what: "there is no directory for missions' content",
        why: "the backup has \(manifest.content.count.counted("file")) of missions",
        next: "give --blobs DIR")
    }
    let target = if let content { content } else { BlobThreads(try BlobDirectory(blobs)) }
    if !manifest.content.isEmpty {
      let source = try await reading("the content") { try place.content() }
      let copies = BackupContent(source: source, target: target)
      try await copies.copy(manifest.contentDigests) { _ in }
    }
    let key = missionKey ?? blobs + "/" + BackupManifest.keyName
    if let part = manifest.missionKey, !FileManager.default.fileExists(atPath: key) {
      try await copyPart(BackupManifest.keyName, part, to: key)
    }
  }

  /// Moves a file to a new name; returns `false` if the name exists.
  private func renamex(_ source: String, _ target: String) -> Bool {
    // link(2) fails if the name exists: a server may have created a store meanwhile.
    guard link(source, target) == 0 else { return false }
    return unlink(source) == 0
  }

  private func damaged(_ reason: String) -> BackupError {
    BackupError(
      what: "the backup in \(place.name) is damaged", why: reason, next: "use another backup")
  }

  private func occupied(_ reason: String) -> BackupError {
    BackupError(
      what: "a backup is restored into a new store only", why: reason,
      next: "name a directory or a database that is empty")
  }
}

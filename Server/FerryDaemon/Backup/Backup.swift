import FerryMissionServer
import FerryProtocol
import FerrySQLite
import FerrySyncServer
import Foundation

/// The failure of a backup or of a restore.
struct BackupError: Error, Equatable {
  var what: String
  var why: String
  var next: String
}

/// Makes a backup of a store and of its missions' content, also while servers write. All calls block.
///
/// The store comes first. The server keeps content for days after its last use, so all that the
/// store's copy names is still there.
struct BackupMaker {
  let folder: String
  let store: StoreLocation
  /// The directory of missions' content; `nil` if there is none.
  let blobs: String?
  let missionKey: String?

  /// - Parameter progress: gets the bytes done so far.
  func run(createdAt: String, progress: (Int64) -> Void) throws -> BackupManifest {
    try makeFolder()
    let kind: BackupManifest.Store
    switch store {
    case .embedded(let directory):
      kind = .embedded
      try copyStore(directory + "/" + SQLiteStore.fileName)
    case .postgres(let addresses):
      kind = .postgres
      try PostgresArchive(url: addresses.direct ?? addresses.main).dump(to: path(kind.fileName))
    }
    var manifest = BackupManifest(
      ferry: FerryVersion.current, createdAt: createdAt, store: kind,
      storeFile: try Self.part(path(kind.fileName)), content: [])
    progress(manifest.storeFile.size)
    try copyContent(&manifest, progress)
    if kind == .embedded { try checkContent(manifest) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try write(try encoder.encode(manifest), to: path(BackupManifest.fileName))
    return manifest
  }

  private func path(_ name: String) -> String { folder + "/" + name }

  private func makeFolder() throws {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    guard names.isEmpty else {
      throw BackupError(
        what: "\(folder) is not empty", why: "a backup has a folder of its own",
        next: "name another folder, or empty this one")
    }
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  private func copyStore(_ source: String) throws {
    let connection = try SQLiteConnection(path: source, mode: .readOnly)
    try connection.run("VACUUM INTO ?", path(BackupManifest.Store.embedded.fileName))
  }

  private func copyContent(
    _ manifest: inout BackupManifest, _ progress: (Int64) -> Void
  ) throws {
    guard let blobs, FileManager.default.fileExists(atPath: blobs) else { return }
    let key = missionKey ?? blobs + "/" + BackupManifest.keyName
    if FileManager.default.fileExists(atPath: key) {
      let bytes = try Data(contentsOf: URL(filePath: key))
      try write(bytes, to: path(BackupManifest.keyName))
      manifest.missionKey = try Self.part(path(BackupManifest.keyName))
    }
    let source = try BlobDirectory(blobs)
    let target = try BlobDirectory(path("content"))
    var done = manifest.storeFile.size
    for shard in UInt8.min...UInt8.max {
      for hash in try source.content(inShard: shard, before: .max) {
        guard let size = try source.size(of: hash) else { continue }
        let digest = FileDigest(size: size, hash: hash)
        try target.put(file: source.file(of: hash), digest)
        manifest.content.append(.init(size: size, sha256: hash.description))
        done += size
        progress(done)
      }
    }
  }

  /// Checks that all content is here that the store's copy names.
  private func checkContent(_ manifest: BackupManifest) throws {
    let kept = Set(manifest.content.map(\.sha256))
    let connection = try SQLiteConnection(
      path: path(manifest.store.fileName), mode: .readOnly)
    let missing = try connection.rows(
      "SELECT DISTINCT lower(hex(sha256)) FROM mission_blobs WHERE ended IS NULL"
    ) { $0.text(0) }.filter { !kept.contains($0) }
    guard let first = missing.first else { return }
    throw BackupError(
      what: "the content of missions is not complete",
      why: "\(missing.count) files are not in \(blobs ?? "--blobs"), such as \(first)",
      next: "name the directory with --blobs; `ferryd mission show` names the missions' files")
  }

  /// Writes a file for this user alone, and waits until it is on the disk.
  private func write(_ bytes: Data, to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw BlobError(path, code: errno) }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try file.write(contentsOf: bytes)
    try file.synchronize()
  }

  static func part(_ path: String) throws -> BackupManifest.Part {
    let digest = try FileHasher.digest(of: path, chunkSize: nil)
    return .init(size: digest.size, sha256: digest.hash.description)
  }
}

/// Brings a backup back into a store that does not exist yet. All calls block.
struct BackupRestorer {
  let folder: String
  let store: StoreLocation
  let blobs: String?
  /// The place of the key that signs missions; `nil` for a file beside the content.
  let missionKey: String?

  private func path(_ name: String) -> String { folder + "/" + name }

  /// Reads the list of a backup's parts.
  func manifest() throws -> BackupManifest {
    let bytes: Data
    do { bytes = try Data(contentsOf: URL(filePath: path(BackupManifest.fileName))) } catch {
      throw BackupError(
        what: "\(folder) is no backup", why: "it has no file \(BackupManifest.fileName)",
        next: "name the folder that `ferryd backup` made; a backup that was interrupted has none")
    }
    let manifest: BackupManifest
    do { manifest = try JSONDecoder().decode(BackupManifest.self, from: bytes) } catch {
      throw damaged("its file \(BackupManifest.fileName) cannot be read: \(error)")
    }
    if let fault = manifest.fault { throw damaged(fault) }
    return manifest
  }

  /// Checks all parts, and then brings them back: content first, the store last.
  func run(_ manifest: BackupManifest, progress: (Int64) -> Void) throws {
    try check(manifest, progress)
    switch (manifest.store, store) {
    case (.embedded, .embedded(let directory)):
      guard !store.exists else { throw occupied("\(directory) has a store") }
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      try bringContent(manifest)
      let draft = directory + "/" + SQLiteStore.fileName + ".restoring"
      try? FileManager.default.removeItem(atPath: draft)
      try FileManager.default.copyItem(atPath: path(manifest.store.fileName), toPath: draft)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: draft)
      try sync(draft)
      let target = directory + "/" + SQLiteStore.fileName
      guard renamex(draft, target) else { throw BlobError(target, code: errno) }
      try sync(directory)
    case (.postgres, .postgres(let addresses)):
      let archive = PostgresArchive(url: addresses.direct ?? addresses.main)
      try archive.checkIsEmpty()
      try bringContent(manifest)
      try archive.restore(from: path(manifest.store.fileName))
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
  func check(_ manifest: BackupManifest, _ progress: (Int64) -> Void) throws {
    var done: Int64 = 0
    var parts = [(path(manifest.store.fileName), manifest.storeFile)]
    if let key = manifest.missionKey { parts.append((path(BackupManifest.keyName), key)) }
    let content = manifest.content.isEmpty ? nil : try BlobDirectory(path("content"))
    for part in manifest.content {
      guard let hash = ContentHash(part.sha256), let content else { continue }
      parts.append((content.file(of: hash), part))
    }
    for (file, part) in parts {
      let found: BackupManifest.Part
      do { found = try BackupMaker.part(file) } catch { throw damaged("\(error)") }
      guard found == part else { throw damaged("\(file) is not as it was backed up") }
      done += part.size
      progress(done)
    }
  }

  private func bringContent(_ manifest: BackupManifest) throws {
    if manifest.content.isEmpty, manifest.missionKey == nil { return }
    guard let blobs else {
      throw BackupError(
        what: "there is no directory for missions' content",
        why: "the backup has \(manifest.content.count) files of missions",
        next: "give --blobs DIR")
    }
    let (source, target) = (try BlobDirectory(path("content")), try BlobDirectory(blobs))
    for part in manifest.content {
      guard let hash = ContentHash(part.sha256) else { continue }
      try target.put(file: source.file(of: hash), FileDigest(size: part.size, hash: hash))
    }
    let key = missionKey ?? blobs + "/" + BackupManifest.keyName
    if manifest.missionKey != nil, !FileManager.default.fileExists(atPath: key) {
      try FileManager.default.copyItem(atPath: path(BackupManifest.keyName), toPath: key)
    }
  }

  private func sync(_ path: String) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw BlobError(path, code: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw BlobError(path, code: errno) }
  }

  /// Moves a file to a name that does not exist; returns whether it did.
  private func renamex(_ source: String, _ target: String) -> Bool {
    // link(2) fails if the name exists: a server may have created a store meanwhile.
    guard link(source, target) == 0 else { return false }
    return unlink(source) == 0
  }

  private func damaged(_ reason: String) -> BackupError {
    BackupError(
      what: "the backup in \(folder) is damaged", why: reason, next: "use another backup")
  }

  private func occupied(_ reason: String) -> BackupError {
    BackupError(
      what: "a backup is restored into a new store only", why: reason,
      next: "name a directory or a database that is empty")
  }
}

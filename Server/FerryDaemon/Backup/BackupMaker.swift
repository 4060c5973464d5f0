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

/// Makes a backup of a store and of its missions' content, also while servers write. Its calls
/// block: run them on a task that may.
///
/// The store comes first. The server keeps content for days after its last use, so all that the
/// store's copy names is still there.
struct BackupMaker {
  let folder: String
  let store: StoreLocation
  /// The directory of missions' content; `nil` if there is none.
  let blobs: String?
  let missionKey: String?
  /// The store elsewhere that has the content; `nil` if the directory has it.
  var content: (any ContentStore)?

  /// - Parameter progress: gets the bytes done so far.
  func run(createdAt: String, progress: (Int64) -> Void) async throws -> BackupManifest {
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
    try await copyContent(&manifest, progress)
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
  ) async throws {
    guard let blobs, FileManager.default.fileExists(atPath: blobs) else { return }
    let key = missionKey ?? blobs + "/" + BackupManifest.keyName
    if FileManager.default.fileExists(atPath: key) {
      let bytes = try Data(contentsOf: URL(filePath: key))
      try write(bytes, to: path(BackupManifest.keyName))
      manifest.missionKey = try Self.part(path(BackupManifest.keyName))
    }
    let source = if let content { content } else { BlobThreads(try BlobDirectory(blobs)) }
    let target = BlobThreads(try BlobDirectory(path("content")))
    var done = manifest.storeFile.size
    var place: String?
    repeat {
      let page = try await source.page(from: place, before: .max)
      let sizes = try await source.sizes(of: page.hashes)
      for hash in page.hashes {
        guard let size = sizes[hash] else { continue }
        if let file = source.file(of: hash) {
          try target.directory.put(file: file, FileDigest(size: size, hash: hash))
        } else {
          try await copy(hash, size, from: source, to: target)
        }
        manifest.content.append(.init(size: size, sha256: hash.description))
        done += size
        progress(done)
      }
      place = page.next
    } while place != nil
    // A store elsewhere may list in another order.
    manifest.content.sort { $0.sha256 < $1.sha256 }
  }

  /// Copies content of a store elsewhere; the last part checks its hash.
  private func copy(
    _ hash: ContentHash, _ size: Int64, from source: any ContentStore, to target: BlobThreads
  ) async throws {
    let upload = BlobDirectory.Upload(owner: "backup", hash: hash, total: size)
    let reader = try await source.read(hash, 0..<size, of: size)
    var end: Int64 = 0
    while let bytes = try await reader.next() {
      end = try await target.append(bytes, at: end, to: upload)
    }
    if size == 0 { _ = try await target.append([], at: 0, to: upload) }
    guard end == size else { throw BlobError.missing(place: "\(source.place) \(hash)") }
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
      why:
        "\(missing.count) files are not in \(content?.place ?? blobs ?? "--blobs"), such as \(first)",
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
  /// The store elsewhere that gets the content; `nil` for the directory.
  var content: (any ContentStore)?

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
  func run(_ manifest: BackupManifest, progress: (Int64) -> Void) async throws {
    try check(manifest, progress)
    switch (manifest.store, store) {
    case (.embedded, .embedded(let directory)):
      guard !store.exists else { throw occupied("\(directory) has a store") }
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      try await bringContent(manifest)
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
      try await bringContent(manifest)
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

  private func bringContent(_ manifest: BackupManifest) async throws {
    if manifest.content.isEmpty, manifest.missionKey == nil { return }
    guard let blobs else {
      throw BackupError(
        what: "there is no directory for missions' content",
        why: "the backup has \(manifest.content.count) files of missions",
        next: "give --blobs DIR")
    }
    let source = try BlobDirectory(path("content"))
    let target = if let content { content } else { BlobThreads(try BlobDirectory(blobs)) }
    let files = manifest.content.compactMap { part in
      ContentHash(part.sha256).map { hash in
        BlobSource(path: source.file(of: hash), digest: FileDigest(size: part.size, hash: hash))
      }
    }
    try await target.put(files: files) { _ in }
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

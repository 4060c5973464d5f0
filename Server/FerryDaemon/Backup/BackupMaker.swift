import FerryCommandLine
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

/// A backup of a store and of the missions' content, also while servers write. The calls block: run
/// them on a task where this is permitted.
///
/// The store comes first. The server keeps content for days after the last use, so all content
/// named by the store's copy is still there.
struct BackupMaker {
  let place: any BackupPlace
  let store: StoreLocation
  /// The directory of missions' content; `nil` if there is none.
  let blobs: String?
  let missionKey: String?
  /// The store of the content elsewhere; `nil` if the directory has the content.
  var content: (any ContentStore)?

  /// - Parameter progress: gets the bytes done so far.
  func run(createdAt: String, progress: (Int64) -> Void) async throws -> BackupManifest {
    guard try await place.claim() else {
      throw BackupError(
        what: "\(place.name) is not empty", why: "a backup has a place of its own",
        next: "name another place, or empty this one")
    }
    let kind: BackupManifest.Store = if case .embedded = store { .embedded } else { .postgres }
    let copy = place.draft(of: kind.fileName)
    // SQLite and pg_dump would create the file for all users; both fill an empty one.
    try BackupFile.write(Data(), to: copy)
    switch store {
    case .embedded(let directory):
      let connection = try SQLiteConnection(
        path: directory + "/" + SQLiteStore.fileName, mode: .readOnly)
      try connection.run("VACUUM INTO ?", copy)
    case .postgres(let addresses):
      try PostgresArchive(url: addresses.direct ?? addresses.main).dump(to: copy)
    }
    let kept = try await copyContent(progress)
    if kind == .embedded { try checkContent(kept, of: copy) }
    let manifest = BackupManifest(
      ferry: FerryVersion.current, createdAt: createdAt, store: kind,
      storeFile: try await place.copy(kind.fileName), missionKey: try await copyKey(),
      content: kept)
    try await place.storeManifest(try manifest.encoded())
    return manifest
  }

  private func copyKey() async throws -> BackupManifest.Part? {
    guard let key = missionKey ?? blobs.map({ $0 + "/" + BackupManifest.keyName }),
      FileManager.default.fileExists(atPath: key)
    else { return nil }
    let bytes = try Data(contentsOf: URL(filePath: key))
    try BackupFile.write(bytes, to: place.draft(of: BackupManifest.keyName))
    return try await place.copy(BackupManifest.keyName)
  }

  private func copyContent(_ progress: (Int64) -> Void) async throws -> [BackupManifest.Part] {
    guard let blobs, FileManager.default.fileExists(atPath: blobs) else { return [] }
    let source = if let content { content } else { BlobThreads(try BlobDirectory(blobs)) }
    let target = try self.place.content()
    var parts: [BackupManifest.Part] = []
    var done: Int64 = 0
    var place: String?
    repeat {
      let page = try await source.page(from: place, before: .max)
      let sizes = try await source.sizes(of: page.hashes)
      let digests = page.hashes.compactMap { hash in
        sizes[hash].map { FileDigest(size: $0, hash: hash) }
      }
      try await BackupContent(source: source, target: target).copy(digests) { done += $0 }
      parts += digests.map { .init(size: $0.size, sha256: $0.hash.description) }
      progress(done)
      place = page.next
    } while place != nil
    // A store elsewhere may list in another order.
    return parts.sorted { $0.sha256 < $1.sha256 }
  }

  /// Checks the presence of all content named by the store's copy.
  private func checkContent(_ parts: [BackupManifest.Part], of copy: String) throws {
    let kept = Set(parts.map(\.sha256))
    let connection = try SQLiteConnection(path: copy, mode: .readOnly)
    let missing = try connection.rows(
      "SELECT DISTINCT lower(hex(sha256)) FROM mission_blobs WHERE ended IS NULL"
    ) { $0.text(0) }.filter { !kept.contains($0) }
    guard let first = missing.first else { return }
    throw BackupError(
      what: "the content of missions is not complete",
      why:
        "\(missing.count.grouped) files are not in \(content?.place ?? blobs ?? "--blobs"), such as \(first)",
      next: "name the directory with --blobs; `ferryd mission show` names the missions' files")
  }
}

import FerryProtocol
import Foundation

/// A file to store, with a digest.
package struct BlobSource: Sendable {
  package let path: String
  package let digest: FileDigest
  /// Prevents the collection of the content if a ``BlobIntake`` has stored it.
  private let hold: BlobHold?

  package init(path: String, digest: FileDigest, hold: BlobHold? = nil) {
    (self.path, self.digest, self.hold) = (path, digest, hold)
  }
}

// Many small files at once: a disk takes as long for one file as for all waiting ones.
extension BlobDirectory {
  /// Larger files, in bytes, are kept one by one.
  static let batchedBytes: Int64 = 256 << 10
  /// Files that reach the disk together.
  static let batchFiles = 512

  /// Stores copies of files with known digests, like ``store(file:_:goesOn:)`` for one. No content
  /// has its name before it is on the disk, and all names are on the disk when this returns. The
  /// caller has a ``acquire()``.
  package func store(
    files: [BlobSource], goesOn: (Int) -> Bool = { _ in true }
  ) throws(BlobError) {
    var batch: [BlobSource] = []
    for file in files {
      if file.digest.size > Self.batchedBytes {
        try store(file: file.path, file.digest, goesOn: goesOn)
        continue
      }
      batch.append(file)
      guard batch.count == Self.batchFiles else { continue }
      try store(batch: batch, goesOn)
      batch = []
    }
    try store(batch: batch, goesOn)
  }

  private func store(batch: [BlobSource], _ goesOn: (Int) -> Bool) throws(BlobError) {
    guard batch.count > 1 else {
      for file in batch { try store(file: file.path, file.digest, goesOn: goesOn) }
      return
    }
    var drafts: [(path: String, hash: ContentHash)] = []
    var seen: Set<ContentHash> = []
    do {
      for file in batch where seen.insert(file.digest.hash).inserted {
        if try adopt(file.digest) { continue }
        let draft = newDraft()
        drafts.append((draft, file.digest.hash))
        try copy(file.path, file.digest, to: try BlobFile(draft, Self.draftFlags), goesOn)
      }
      try name(drafts)
    } catch {
      for draft in drafts { unlink(draft.path) }
      throw error
    }
  }

  /// Renames drafts to their names, with all of them on the disk before and after.
  private func name(_ drafts: [(path: String, hash: ContentHash)]) throws(BlobError) {
    if drafts.isEmpty { return }
    // The operating system first writes all buffers. Then a sync of each file costs next to
    // nothing, and reports failures.
    sync()
    for draft in drafts { try BlobFile(draft.path, O_RDONLY).sync() }
    for draft in drafts { try move(draft.path, to: draft.hash, syncs: false) }
    sync()
    var folders: Set<String> = [path]
    for draft in drafts {
      let inner = file(of: draft.hash).dropLast(draft.hash.description.utf8.count + 1)
      folders.insert(String(inner))
      folders.insert(String(inner.dropLast(3)))
    }
    for folder in folders.sorted() { try Self.syncFolder(folder) }
  }
}

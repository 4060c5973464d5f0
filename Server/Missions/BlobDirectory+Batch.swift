import FerryProtocol
import Foundation

/// A file that is to be kept, with what it holds.
package struct BlobSource: Sendable {
  package let path: String
  package let digest: FileDigest

  package init(path: String, digest: FileDigest) {
    (self.path, self.digest) = (path, digest)
  }
}

// Many small files at once: a disk takes as long for one file as for all that wait for it.
extension BlobDirectory {
  /// Larger files, in bytes, are kept one by one.
  static let batchedBytes: Int64 = 256 << 10
  /// Files that reach the disk together.
  static let batchFiles = 512

  /// Keeps copies of files whose digests are known, as ``put(file:_:goesOn:)`` does with one: no
  /// content has its name before it is on the disk, and all names are when this returns. Whoever
  /// calls it has a ``hold()``.
  package func put(
    files: [BlobSource], goesOn: (Int) -> Bool = { _ in true }
  ) throws(BlobError) {
    var batch: [BlobSource] = []
    for file in files {
      if file.digest.size > Self.batchedBytes {
        try put(file: file.path, file.digest, goesOn: goesOn)
        continue
      }
      batch.append(file)
      guard batch.count == Self.batchFiles else { continue }
      try put(batch: batch, goesOn)
      batch = []
    }
    try put(batch: batch, goesOn)
  }

  #if os(Linux)
    private func put(batch: [BlobSource], _ goesOn: (Int) -> Bool) throws(BlobError) {
      guard batch.count > 1 else {
        for file in batch { try put(file: file.path, file.digest, goesOn: goesOn) }
        return
      }
      // What fails on the way to the disk is told to whoever had it open before (syncfs(2)).
      let folder = try BlobFile(path, O_RDONLY | O_DIRECTORY)
      var drafts: [(path: String, hash: ContentHash)] = []
      var seen: Set<ContentHash> = []
      do {
        for file in batch where seen.insert(file.digest.hash).inserted {
          if try adopt(file.digest) { continue }
          let draft = newDraft()
          drafts.append((draft, file.digest.hash))
          try copy(file.path, file.digest, to: try BlobFile(draft, Self.draftFlags), goesOn)
        }
        if drafts.isEmpty { return }
        try folder.syncFileSystem()
        for draft in drafts { try move(draft.path, to: draft.hash, syncs: false) }
        try folder.syncFileSystem()
      } catch {
        for draft in drafts { unlink(draft.path) }
        throw error
      }
    }
  #else
    private func put(batch: [BlobSource], _ goesOn: (Int) -> Bool) throws(BlobError) {
      for file in batch { try put(file: file.path, file.digest, goesOn: goesOn) }
    }
  #endif
}

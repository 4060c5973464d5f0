import FerryCryptography
import FerryPlatform
import FerryProtocol
import Foundation

/// Content in files, named by their SHA-256: `ab/cd/abcd…`. Incoming content is in `incoming` until
/// it is whole and on the disk. Then it gets its name in one step, so a file with such a name is
/// always whole. Any number of processes may share the directory, also over a network with
/// flock(2). All calls block.
package struct BlobDirectory: Sendable {
  /// Without a slash at the end.
  package let path: String

  /// The directory of incoming content.
  var incoming: String { path + "/incoming" }

  /// Makes the directory if it is absent, for this user and group only.
  package init(_ path: String) throws(BlobError) {
    self.path = path.utf8.count > 1 ? String(path.start(before: "/") ?? path[...]) : path
    try Self.makeFolder(self.path, withParents: true)
    try Self.makeFolder(incoming)
    guard access(self.path, W_OK | X_OK) == 0 else { throw BlobError(self.path, code: errno) }
  }

  /// Returns the path of content with this hash, if it is there.
  package func file(of hash: ContentHash) -> String {
    let name = hash.description
    return "\(path)/\(name.prefix(2))/\(name.dropFirst(2).prefix(2))/\(name)"
  }

  /// Returns the bytes of the content; `nil` if it is not here.
  package func size(of hash: ContentHash) throws(BlobError) -> Int64? {
    try Self.size(ofFile: file(of: hash))
  }

  /// Reads content of no more than `limit` bytes into memory; `nil` if it is not here.
  package func content(of hash: ContentHash, limit: Int) throws(BlobError) -> [UInt8]? {
    guard let size = try size(of: hash) else { return nil }
    guard size <= Int64(limit) else { throw .system(path: file(of: hash), code: EFBIG) }
    let file = try BlobFile(file(of: hash), O_RDONLY)
    let bytes = try file.bytes(Int(size))
    guard Int64(bytes.count) == size else { throw .changed(path: file.path) }
    return bytes
  }

  /// Returns `true` if the stored content still matches the hash; `nil` if it is not here.
  package func isIntact(
    _ hash: ContentHash, goesOn: (Int) -> Bool = { _ in true }
  ) throws(BlobError) -> Bool? {
    guard try size(of: hash) != nil else { return nil }
    let digest = try FileHasher.digest(of: file(of: hash), chunkSize: nil, goesOn: goesOn)
    return digest.hash == hash
  }

  // MARK: Keeping

  /// Stores a copy of a file with a known digest. If the content is here already, nothing is
  /// copied. Throws ``BlobError/changed(path:)`` if the file has changed by now.
  package func store(
    file source: String, _ digest: FileDigest, goesOn: (Int) -> Bool = { _ in true }
  ) throws(BlobError) {
    if try adopt(digest) { return }
    try store { (draft: borrowing BlobFile) throws(BlobError) in
      try copy(source, digest, to: draft, goesOn)
      return digest
    }
  }

  /// Stores a copy of a regular file, and returns the digest. The file is read once, and the hashes
  /// are those of the copy.
  func store(
    new source: String, chunkSize: Int64?, goesOn: (Int) -> Bool
  ) throws(BlobError) -> FileDigest {
    let file = try BlobFile(linkless: source)
    return try store { (draft: borrowing BlobFile) throws(BlobError) in
      var flushed: Int64 = 0
      return try FileHasher.digest(of: file, chunkSize: chunkSize) {
        (bytes, offset) throws(BlobError) in
        try draft.write(bytes, at: offset)
        let end = offset + Int64(bytes.count)
        if end - flushed >= Self.flushedBytes {
          draft.startFlushing(flushed..<end)
          flushed = end
        }
        guard goesOn(bytes.count) else { throw .cancelled }
      }
    }
  }

  /// Bytes written to the disk while the next ones are hashed.
  private static let flushedBytes: Int64 = 8 << 20

  /// Copies a file, and checks the copy against the digest.
  func copy(
    _ source: String, _ digest: FileDigest, to draft: borrowing BlobFile,
    _ goesOn: (Int) -> Bool
  ) throws(BlobError) {
    let file = try BlobFile(source, O_RDONLY | O_NONBLOCK)
    let copied = try FileHasher.digest(of: file) { (bytes, offset) throws(BlobError) in
      try draft.write(bytes, at: offset)
      guard goesOn(bytes.count) else { throw .cancelled }
    }
    guard copied.hash == digest.hash else { throw .changed(path: source) }
  }

  /// Stores content from memory, and returns the hash.
  @discardableResult
  package func store(_ bytes: [UInt8]) throws(BlobError) -> ContentHash {
    let digest = FileDigest(size: Int64(bytes.count), hash: ContentHash(of: bytes))
    if try adopt(digest) { return digest.hash }
    try store { (copy: borrowing BlobFile) throws(BlobError) in
      try copy.write(bytes, at: 0)
      return digest
    }
    return digest.hash
  }

  /// Returns `true` if the content is here already. A file cut short by a failed disk does not
  /// count.
  func adopt(_ digest: FileDigest) throws(BlobError) -> Bool {
    try size(of: digest.hash) == digest.size
  }

  /// Stores the content written by `fill`, unless it is here already. Returns the digest from
  /// `fill`.
  @discardableResult
  private func store(
    _ fill: (borrowing BlobFile) throws(BlobError) -> FileDigest
  ) throws(BlobError) -> FileDigest {
    let draft = newDraft()
    do {
      let file = try BlobFile(draft, Self.draftFlags)
      try file.lock(LOCK_EX)
      let digest = try fill(file)
      if try adopt(digest) {
        unlink(draft)
      } else {
        try file.sync()
        try move(draft, to: digest.hash)
      }
      return digest
    } catch {
      unlink(draft)
      throw error
    }
  }

  static let draftFlags = O_RDWR | O_CREAT | O_EXCL

  /// Returns an unused name in `incoming`.
  func newDraft() -> String { "\(incoming)/draft-\(getpid())-\(Self.randomName())" }

  /// Renames a whole file on the disk to its name.
  ///
  /// - Parameter syncs: Whether the name is on the disk when this returns.
  func move(
    _ draft: String, to hash: ContentHash, syncs: Bool = true
  ) throws(BlobError) {
    let file = file(of: hash)
    let inner = String(file.dropLast(hash.description.utf8.count + 1))
    let outer = String(inner.dropLast(3))
    // Another process may remove an empty folder just now.
    for _ in 0..<10 {
      let isNew = try Self.makeFolder(outer)
      if try Self.makeFolder(inner) || isNew, syncs {
        try Self.syncFolder(path)
        try Self.syncFolder(outer)
      }
      if rename(draft, file) == 0 {
        if syncs { try Self.syncFolder(inner) }
        return
      }
      guard errno == ENOENT else { throw BlobError(file, code: errno) }
    }
    throw BlobError(file, code: ENOENT)
  }

  // MARK: Files

  /// Returns the size of a file; `nil` if there is none.
  static func size(ofFile path: String) throws(BlobError) -> Int64? {
    var status = stat()
    if stat(path, &status) == 0 {
      return status.st_mode & S_IFMT == S_IFREG ? Int64(status.st_size) : nil
    }
    guard errno == ENOENT || errno == ENOTDIR else { throw BlobError(path, code: errno) }
    return nil
  }

  /// Makes a folder. Returns whether it was not there before.
  @discardableResult
  static func makeFolder(_ path: String, withParents: Bool = false) throws(BlobError) -> Bool {
    if mkdir(path, 0o750) == 0 { return true }
    let code = errno
    if code == EEXIST {
      var status = stat()
      guard stat(path, &status) == 0 else { throw BlobError(path, code: errno) }
      guard status.st_mode & S_IFMT == S_IFDIR else { throw BlobError(path, code: ENOTDIR) }
      return false
    }
    if code == ENOENT, withParents, let slash = path.last("/"), slash > path.startIndex {
      try makeFolder(String(path[..<slash]), withParents: true)
      return try makeFolder(path)
    }
    throw BlobError(path, code: code)
  }

  /// Returns when the folder's entries have reached the disk.
  static func syncFolder(_ path: String) throws(BlobError) {
    try BlobFile(path, O_RDONLY | O_DIRECTORY).sync()
  }

  static func randomName() -> String {
    SecureRandom.bytes(8).map { String($0, radix: 36) }.joined()
  }
}

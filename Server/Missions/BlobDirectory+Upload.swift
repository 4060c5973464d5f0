import FerryPlatform
import FerryProtocol
import Foundation

// Uploads in parts. They survive the end of connections, processes and servers.
extension BlobDirectory {
  /// An upload under way: owner and content.
  package struct Upload: Sendable, Equatable {
    /// Uploads of different owners are separate: no owner may finish, or learn of, another's.
    package let owner: String
    package let hash: ContentHash
    /// Bytes of the whole.
    package let total: Int64
    /// Bytes of the owner's unfinished uploads here, this one as a whole included.
    package let quota: Int64
    /// True if one process sends all parts. A remote store then gets only the complete content.
    package let staysHere: Bool

    /// - Parameter owner: Letters and digits.
    package init(
      owner: String, hash: ContentHash, total: Int64, quota: Int64 = .max, staysHere: Bool = false
    ) {
      (self.owner, self.hash, self.total) = (owner, hash, total)
      (self.quota, self.staysHere) = (quota, staysHere)
    }
  }

  /// Unfinished uploads of an owner.
  static let unfinishedMax = 10_000

  /// Content up to this size, in bytes, is checked in about the time in which it is written.
  static let quicklyChecked: Int64 = 8 << 20

  /// Returns the present bytes of an upload; 0 if none was begun.
  package func offset(owner: String, _ hash: ContentHash) throws(BlobError) -> Int64 {
    try Self.size(ofFile: part(owner, hash)) ?? 0
  }

  /// Appends the next part of an upload. With the last part the whole is checked and stored.
  /// Returns the present bytes.
  ///
  /// All of it may be here already but unchecked, because the server was killed meanwhile. Then any
  /// part starts the check.
  ///
  /// - Throws:
  ///   - ``BlobError/wrongOffset(_:)`` if the upload goes on elsewhere.
  ///   - ``BlobError/mismatch(expected:found:)`` if the whole does not match the hash. The upload
  ///     then begins again from scratch.
  ///   - ``BlobError/overQuota(used:total:quota:)`` if the owner has begun too much already. The
  ///     present bytes of this upload stay.
  ///   - ``BlobError/tooManyUploads(limit:)`` if the owner has begun too many already.
  package func append(
    _ bytes: [UInt8], at offset: Int64, to upload: Upload
  ) throws(BlobError) -> Int64 {
    while true {
      let file = try BlobFile(part(upload.owner, upload.hash), O_RDWR | O_CREAT)
      try file.lock(LOCK_EX)
      // The last holder of the lock may have finished the upload, or given it up.
      guard Self.isSame(try file.status(), as: file.path) else { continue }
      return try append(bytes, at: offset, to: upload, file)
    }
  }

  /// Does the same if it takes no longer than writing the part. Otherwise returns `nil` and does
  /// nothing: another caller is at the upload, or a large whole is to be checked.
  package func appendQuickly(
    _ bytes: [UInt8], at offset: Int64, to upload: Upload
  ) throws(BlobError) -> Int64? {
    while true {
      let file = try BlobFile(part(upload.owner, upload.hash), O_RDWR | O_CREAT)
      guard try file.tryLock() else { return nil }
      guard Self.isSame(try file.status(), as: file.path) else { continue }
      if upload.total > Self.quicklyChecked {
        let size = try file.size()
        let end = offset == size ? size + Int64(bytes.count) : size
        if end == upload.total { return nil }
      }
      return try append(bytes, at: offset, to: upload, file)
    }
  }

  /// Returns the number and bytes of all unfinished uploads of an owner.
  package func unfinished(of owner: String) throws(BlobError) -> (files: Int, bytes: Int64) {
    var (files, bytes) = (0, Int64(0))
    for name in try Self.names(in: incoming) where name.begins(with: "part-\(owner)-") {
      files += 1
      bytes += try Self.size(ofFile: "\(incoming)/\(name)") ?? 0
    }
    return (files, bytes)
  }

  private func append(
    _ bytes: [UInt8], at offset: Int64, to upload: Upload, _ file: borrowing BlobFile
  ) throws(BlobError) -> Int64 {
    let end = try write(bytes, at: offset, to: upload, file)
    if end == upload.total { try finish(upload, file) }
    return end
  }

  /// Writes the next part, and returns the present bytes.
  func write(
    _ bytes: [UInt8], at offset: Int64, to upload: Upload, _ file: borrowing BlobFile
  ) throws(BlobError) -> Int64 {
    let size = try file.size()
    // It was begun as a longer content, so nothing of it can be proved right.
    if size > upload.total {
      unlink(file.path)
      throw .wrongOffset(0)
    }
    // The server was killed while it checked the whole: any part ends the upload now.
    if size == upload.total, size > 0 { return size }
    let end = size + Int64(bytes.count)
    guard offset == size, end <= upload.total else { throw .wrongOffset(size) }
    // Content in one piece is never unfinished.
    if upload.quota < .max, Int64(bytes.count) < upload.total {
      try checkQuota(of: upload, here: size, file)
    }
    do {
      try file.write(bytes, at: offset)
    } catch {
      // The bytes from before stay unchanged.
      try? file.truncate(to: offset)
      throw error
    }
    return end
  }

  private func checkQuota(
    of upload: Upload, here size: Int64, _ file: borrowing BlobFile
  ) throws(BlobError) {
    let (files, bytes) = try unfinished(of: upload.owner)
    let used = bytes - size
    let (sum, isHuge) = used.addingReportingOverflow(upload.total)
    // This upload's file is there already.
    let isOver = isHuge || sum > upload.quota
    guard isOver || size == 0 && files > Self.unfinishedMax else { return }
    if size == 0 { unlink(file.path) }
    throw isOver
      ? .overQuota(used: used, total: upload.total, quota: upload.quota)
      : .tooManyUploads(limit: Self.unfinishedMax)
  }

  private func finish(_ upload: Upload, _ file: borrowing BlobFile) throws(BlobError) {
    let digest = try FileHasher.digest(of: file)
    guard digest.hash == upload.hash else {
      unlink(file.path)
      throw .mismatch(expected: upload.hash, found: digest.hash)
    }
    try file.sync()
    try move(file.path, to: upload.hash)
  }

  func part(_ owner: String, _ hash: ContentHash) -> String {
    "\(incoming)/part-\(owner)-\(hash)"
  }

  static func isSame(_ status: stat, as path: String) -> Bool {
    var found = stat()
    return stat(path, &found) == 0 && found.st_ino == status.st_ino
      && found.st_dev == status.st_dev
  }
}

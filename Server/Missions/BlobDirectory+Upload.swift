import FerryProtocol
import Foundation

// Uploads that come in parts and survive connections, processes and servers that end.
extension BlobDirectory {
  /// An upload under way: whose it is, and what it is to become.
  package struct Upload: Sendable, Equatable {
    /// Uploads of different owners never meet: nobody may finish, or learn of, another's.
    package let owner: String
    package let hash: ContentHash
    /// Bytes of the whole.
    package let total: Int64
    /// Bytes that the owner's uploads may have here before they are finished, this one as a whole
    /// included.
    package let quota: Int64

    /// - Parameter owner: Letters and digits.
    package init(owner: String, hash: ContentHash, total: Int64, quota: Int64 = .max) {
      (self.owner, self.hash, self.total, self.quota) = (owner, hash, total, quota)
    }
  }

  /// Content up to this size, in bytes, is checked in about the time in which it is written.
  static let quicklyChecked: Int64 = 8 << 20

  /// Bytes of an upload that are here; 0 where none was begun.
  package func offset(owner: String, _ hash: ContentHash) throws(BlobError) -> Int64 {
    try Self.size(ofFile: part(owner, hash)) ?? 0
  }

  /// Takes in the next part of an upload. With the last one the whole is checked and kept.
  /// Answers with the bytes that are here.
  ///
  /// Where all of it is here already, and was not checked because the server was killed meanwhile,
  /// that is done with whatever part comes.
  ///
  /// Throws ``BlobError/wrongOffset(_:)`` where the upload goes on elsewhere, and
  /// ``BlobError/mismatch(expected:found:)`` where the whole is not what it was named by: then it
  /// begins anew. Throws ``BlobError/overQuota(used:total:quota:)`` where the owner has begun too
  /// much already; what is there of this upload stays.
  package func append(
    _ bytes: [UInt8], at offset: Int64, to upload: Upload
  ) throws(BlobError) -> Int64 {
    while true {
      let file = try BlobFile(part(upload.owner, upload.hash), O_RDWR | O_CREAT)
      try file.lock(LOCK_EX)
      // Whoever had the lock may have finished the upload, or given it up.
      guard Self.isSame(try file.status(), as: file.path) else { continue }
      return try append(bytes, at: offset, to: upload, file)
    }
  }

  /// The same where that takes no longer than writing the part; else `nil`, and nothing was done:
  /// somebody else is at the upload, or a large whole is to be checked.
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

  /// Bytes of all unfinished uploads of an owner.
  package func unfinishedBytes(of owner: String) throws(BlobError) -> Int64 {
    var bytes: Int64 = 0
    for name in try Self.names(in: incoming) where name.hasPrefix("part-\(owner)-") {
      bytes += try Self.size(ofFile: "\(incoming)/\(name)") ?? 0
    }
    return bytes
  }

  private func append(
    _ bytes: [UInt8], at offset: Int64, to upload: Upload, _ file: borrowing BlobFile
  ) throws(BlobError) -> Int64 {
    let size = try file.size()
    let end = offset + Int64(bytes.count)
    // Begun as something longer: nothing of it can be told to be right.
    if size > upload.total {
      unlink(file.path)
      throw .wrongOffset(0)
    }
    // Whoever brought the last part was killed while it was checked: any part ends it now.
    if size == upload.total, size > 0 {
      try finish(upload, file)
      return size
    }
    guard offset == size else { throw .wrongOffset(size) }
    guard end <= upload.total else { throw .wrongOffset(size) }
    // What comes whole is never unfinished.
    if upload.quota < .max, Int64(bytes.count) < upload.total {
      try checkQuota(of: upload, here: size, file)
    }
    do {
      try file.write(bytes, at: offset)
    } catch {
      // What was there before stays as it was.
      try? file.truncate(to: offset)
      throw error
    }
    if end == upload.total { try finish(upload, file) }
    return end
  }

  private func checkQuota(
    of upload: Upload, here size: Int64, _ file: borrowing BlobFile
  ) throws(BlobError) {
    let used = try unfinishedBytes(of: upload.owner) - size
    let (sum, isHuge) = used.addingReportingOverflow(upload.total)
    guard isHuge || sum > upload.quota else { return }
    if size == 0 { unlink(file.path) }
    throw .overQuota(used: used, total: upload.total, quota: upload.quota)
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

  private func part(_ owner: String, _ hash: ContentHash) -> String {
    "\(incoming)/part-\(owner)-\(hash)"
  }

  private static func isSame(_ status: stat, as path: String) -> Bool {
    var found = stat()
    return stat(path, &found) == 0 && found.st_ino == status.st_ino
      && found.st_dev == status.st_dev
  }
}

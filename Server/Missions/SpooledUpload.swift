import FerryProtocol
import Foundation

/// An upload in a local file, under way to a store. No other caller writes to it while this value
/// lives. The calls block.
package final class SpooledUpload: Sendable {
  /// The file of the bytes.
  package let path: String
  private let upload: BlobDirectory.Upload
  private let file: BlobFile

  init(_ upload: BlobDirectory.Upload, _ file: consuming BlobFile) {
    (path, self.upload) = (file.path, upload)
    self.file = file
  }

  /// Writes a part.
  package func write(_ bytes: [UInt8], at offset: Int64) throws(BlobError) {
    try file.write(bytes, at: offset)
  }

  /// Checks the whole, and returns the hashes.
  ///
  /// - Throws: ``BlobError/mismatch(expected:found:)`` if the whole does not match the hash.
  package func digest(chunkSize: Int64) throws(BlobError) -> FileDigest {
    let digest = try FileHasher.digest(of: file, chunkSize: chunkSize)
    guard digest.hash == upload.hash else {
      throw .mismatch(expected: upload.hash, found: digest.hash)
    }
    return digest
  }

  /// Removes the bytes from here.
  package func remove() { unlink(path) }
}

/// The result of appending to an upload with a destination elsewhere.
package enum Spooling: Sendable {
  /// So many bytes are here.
  case partial(Int64)
  case whole(SpooledUpload)
}

extension BlobDirectory {
  /// Creates an empty local file for the whole content of an upload, and overwrites an earlier one.
  /// Throws ``BlobError/busy`` if another caller writes to it.
  package func copy(of upload: Upload) throws(BlobError) -> SpooledUpload {
    while true {
      let file = try BlobFile(part("copy" + upload.owner, upload.hash), O_RDWR | O_CREAT)
      guard try file.tryLock() else { throw .busy }
      guard Self.isSame(try file.status(), as: file.path) else { continue }
      try file.truncate(to: 0)
      return SpooledUpload(upload, file)
    }
  }

  /// Appends the next part of an upload as ``append(_:at:to:)`` does, and leaves the whole
  /// unchecked where it is. Throws ``BlobError/busy`` if another caller is at the upload.
  package func spool(
    _ bytes: [UInt8], at offset: Int64, to upload: Upload
  ) throws(BlobError) -> Spooling {
    while true {
      let file = try BlobFile(part(upload.owner, upload.hash), O_RDWR | O_CREAT)
      guard try file.tryLock() else { throw .busy }
      guard Self.isSame(try file.status(), as: file.path) else { continue }
      let end = try write(bytes, at: offset, to: upload, file)
      return end == upload.total ? .whole(SpooledUpload(upload, file)) : .partial(end)
    }
  }
}

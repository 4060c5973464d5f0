import FerryProtocol
import Foundation

/// The first look at files that are published: it hashes each, and copies large ones in the same
/// pass if their content is new.
///
/// ```swift
/// let intake = BlobIntake(into: directory, knownSizes: [1 << 30])
/// let source = try intake.take(path, chunkSize: 4 << 20)
/// try directory.put(files: [source])  // copies only files that have no copy yet
/// ```
package struct BlobIntake: Sendable {
  /// The least size, in bytes, of a file that is copied at once. A second pass over a smaller one
  /// costs little.
  static let copiedBytes: Int64 = 8 << 20

  private let directory: BlobDirectory?
  private let knownSizes: Set<Int64>

  /// - Parameters:
  ///   - directory: The place of copies; `nil` for none.
  ///   - knownSizes: Sizes of content that is probably there. A file of another size is new.
  package init(into directory: BlobDirectory? = nil, knownSizes: Set<Int64> = []) {
    (self.directory, self.knownSizes) = (directory, knownSizes)
  }

  /// Reads a regular file; see ``FileHasher/digest(of:chunkSize:goesOn:)``.
  package func take(
    _ path: String, chunkSize: Int64?, goesOn: (Int) -> Bool = { _ in true }
  ) throws(BlobError) -> BlobSource {
    guard let directory, let size = try BlobDirectory.size(ofFile: path),
      size >= Self.copiedBytes, !knownSizes.contains(size)
    else {
      let digest = try FileHasher.digest(of: path, chunkSize: chunkSize, goesOn: goesOn)
      return BlobSource(path: path, digest: digest)
    }
    let copy = try BlobCopy(directory)
    let digest = try copy.fill(from: path, chunkSize: chunkSize, goesOn)
    return BlobSource(path: path, digest: digest, copy: copy)
  }
}

/// A copy of a file among a directory's incoming content. It is locked against the collector, and
/// removed at the end unless it was kept.
package final class BlobCopy: Sendable {
  /// Bytes that go to the disk while the next ones are hashed.
  private static let flushedBytes: Int64 = 8 << 20

  private let directory: BlobDirectory
  private let file: BlobFile

  init(_ directory: BlobDirectory) throws(BlobError) {
    self.directory = directory
    file = try BlobFile(directory.newDraft(), BlobDirectory.draftFlags)
    try file.lock(LOCK_EX)
  }

  deinit { unlink(file.path) }

  /// Copies a file, and returns the hashes of the copy.
  func fill(
    from path: String, chunkSize: Int64?, _ goesOn: (Int) -> Bool
  ) throws(BlobError) -> FileDigest {
    let source = try BlobFile(path, O_RDONLY | O_NONBLOCK)
    var flushed: Int64 = 0
    return try FileHasher.digest(of: source, chunkSize: chunkSize) {
      (bytes, offset) throws(BlobError) in
      try file.write(bytes, at: offset)
      let end = offset + Int64(bytes.count)
      if end - flushed >= Self.flushedBytes {
        file.startFlushing(flushed..<end)
        flushed = end
      }
      guard goesOn(bytes.count) else { throw .cancelled }
    }
  }

  /// Gives the copy its name, unless the content is there.
  func keep(_ digest: FileDigest) throws(BlobError) {
    if try directory.adopt(digest) { return }
    try file.sync()
    try directory.move(file.path, to: digest.hash)
  }
}

import Dispatch
import FerryCryptography
import FerryProtocol
import Foundation

/// A file's content by its hashes.
package struct FileDigest: Sendable, Equatable {
  /// Bytes.
  package let size: Int64
  /// The hash of the whole.
  package let hash: ContentHash
  /// The hash of each chunk; empty if one chunk is the whole file, as in a manifest.
  package let chunks: [ContentHash]

  package init(size: Int64, hash: ContentHash, chunks: [ContentHash] = []) {
    (self.size, self.hash, self.chunks) = (size, hash, chunks)
  }
}

/// A hasher of files of any size, in one pass and in bounded memory. It blocks: run it on a
/// separate thread.
package enum FileHasher {
  /// Bytes read at once; no more is held.
  static let blockBytes = 1 << 20

  /// Returns the hashes of a regular file.
  ///
  /// - Parameters:
  ///   - chunkSize: Bytes of a chunk, a power of two from 64 KiB up; `nil` for the whole alone.
  ///   - goesOn: Called with the bytes hashed since its last call; if it returns `false`, the
  ///     hashing ends with ``BlobError/cancelled``.
  package static func digest(
    of path: String, chunkSize: Int64?, goesOn: (Int) -> Bool = { _ in true }
  ) throws(BlobError) -> FileDigest {
    // Opening a pipe without a writer would wait for one.
    let file = try BlobFile(path, O_RDONLY | O_NONBLOCK)
    guard try file.status().st_mode & S_IFMT == S_IFREG else { throw .notAFile(path: path) }
    return try digest(of: file, chunkSize: chunkSize) { (bytes, _) throws(BlobError) in
      guard goesOn(bytes.count) else { throw .cancelled }
    }
  }

  /// Another thread hashes the whole, while this one runs `body` and hashes the chunk.
  ///
  /// - Parameter body: Lent each block with its place, after it was read.
  static func digest(
    of file: borrowing BlobFile, chunkSize: Int64? = nil,
    _ body: (UnsafeRawBufferPointer, Int64) throws(BlobError) -> Void = { _, _ in }
  ) throws(BlobError) -> FileDigest {
    let size = try file.size()
    let isChunked = chunkSize.map { size > $0 } ?? false
    let block = Int(min(Int64(blockBytes), isChunked ? chunkSize ?? size : Int64(blockBytes)))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: block, alignment: 4_096)
    defer { buffer.deallocate() }
    let whole = HashBeside()
    var chunk = SHA256()
    var chunks: [ContentHash] = []
    var (done, inChunk) = (Int64(0), Int64(0))
    while true {
      let count = try file.read(at: done, into: buffer)
      if count == 0 { break }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      whole.begin(bytes)
      // The block is lent until the end of the loop's step.
      defer { whole.wait() }
      try body(bytes, done)
      done += Int64(count)
      if isChunked {
        chunk.update(bytes)
        inChunk += Int64(count)
        if inChunk == chunkSize {
          chunks.append(ContentHash(digest: chunk.finish()))
          chunk = SHA256()
          inChunk = 0
        }
      }
      // A file that grows for ever would be read for ever.
      guard done <= size else { throw .changed(path: file.path) }
    }
    guard done == size else { throw .changed(path: file.path) }
    if inChunk > 0 { chunks.append(ContentHash(digest: chunk.finish())) }
    return FileDigest(size: done, hash: ContentHash(digest: whole.finish()), chunks: chunks)
  }
}

/// A SHA-256 that another thread computes beside the caller's work. One caller uses it.
private final class HashBeside: @unchecked Sendable {
  /// Bytes from which on another thread saves more time than it costs.
  private static let sharedBytes = 256 << 10

  private var digest = SHA256()
  private let group = DispatchGroup()

  /// Begins to add a part, which the caller lends until ``wait()`` returns.
  func begin(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.sharedBytes else { return digest.update(bytes) }
    nonisolated(unsafe) let bytes = bytes
    DispatchQueue.global(qos: .userInitiated).async(group: group) {
      self.digest.update(bytes)
    }
  }

  func wait() { group.wait() }

  /// Returns the digest of all parts, and begins again.
  func finish() -> [UInt8] {
    var whole = SHA256()
    swap(&whole, &digest)
    return whole.finish()
  }
}

extension ContentHash {
  /// Creates the hash from a digest that ``SHA256`` made.
  package init(digest: [UInt8]) {
    guard let hash = ContentHash(digest) else { preconditionFailure("no digest of SHA-256") }
    self = hash
  }

  /// Creates the hash of content in memory.
  package init(of bytes: [UInt8]) { self.init(digest: SHA256.digest(of: bytes)) }
}

/// Parts of files that are sent elsewhere. It blocks.
package enum FilePart {
  /// Reads up to `count` bytes from `offset` on; fewer at the file's end.
  package static func read(
    _ path: String, at offset: Int64, count: Int
  ) throws(BlobError) -> [UInt8] {
    let file = try BlobFile(path, O_RDONLY | O_NONBLOCK)
    return try file.bytes(count, at: offset)
  }

  /// Returns the bytes of a regular file.
  package static func size(of path: String) throws(BlobError) -> Int64 {
    guard let size = try BlobDirectory.size(ofFile: path) else { throw .notAFile(path: path) }
    return size
  }
}

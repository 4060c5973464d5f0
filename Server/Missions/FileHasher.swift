import Dispatch
import FerryCryptography
import FerryProtocol
import Foundation

/// A file's content, by hash.
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
  /// Bytes read at once.
  static let blockBytes = 1 << 20
  /// Blocks held at once.
  private static let blocks = 4
  /// The size, in bytes, from which other threads save more time than they cost.
  private static let sharedBytes: Int64 = 256 << 10

  /// Returns the hashes of a regular file.
  ///
  /// - Parameters:
  ///   - chunkSize: Bytes of a chunk, a power of two from 64 KiB up; `nil` for the whole alone.
  ///   - goesOn: Called with the bytes hashed since the last call; if it returns `false`, the
  ///     hashing ends with ``BlobError/cancelled``.
  package static func digest(
    of path: String, chunkSize: Int64?, goesOn: (Int) -> Bool = { _ in true }
  ) throws(BlobError) -> FileDigest {
    // Opening a pipe without a writer would wait for one.
    try digest(
      of: try BlobFile(path, O_RDONLY | O_NONBLOCK), chunkSize: chunkSize, goesOn: goesOn)
  }

  /// Returns the hashes of an open file, which has to be a regular one.
  static func digest(
    of file: borrowing BlobFile, chunkSize: Int64?, goesOn: (Int) -> Bool
  ) throws(BlobError) -> FileDigest {
    guard try file.status().st_mode & S_IFMT == S_IFREG else { throw .notAFile(path: file.path) }
    return try digest(of: file, chunkSize: chunkSize) { (bytes, _) throws(BlobError) in
      guard goesOn(bytes.count) else { throw .cancelled }
    }
  }

  /// Two other threads hash the whole and the chunks, while this one reads and runs `body`.
  ///
  /// - Parameter body: Lent each block with the place, after it was read.
  static func digest(
    of file: borrowing BlobFile, chunkSize: Int64? = nil,
    _ body: (UnsafeRawBufferPointer, Int64) throws(BlobError) -> Void = { _, _ in }
  ) throws(BlobError) -> FileDigest {
    let size = try file.size()
    let whole = HashQueue()
    let chunks = chunkSize.flatMap { size > $0 ? HashQueue(pieceBytes: $0) : nil }
    let isShared = size >= sharedBytes
    let slots = (0..<(isShared ? blocks : 1)).map { _ in
      BlockSlot(bytes: min(blockBytes, max(1, Int(clamping: size))))
    }
    // The blocks are lent to the queues.
    defer { for slot in slots { slot.wait() } }
    var done = Int64(0)
    var turn = 0
    while true {
      let slot = slots[turn % slots.count]
      slot.wait()
      let count = try file.read(at: done, into: slot.buffer)
      if count == 0 { break }
      let bytes = UnsafeRawBufferPointer(rebasing: slot.buffer[..<count])
      for queue in [whole, chunks] { queue?.add(bytes, isShared ? slot : nil) }
      try body(bytes, done)
      done += Int64(count)
      turn += 1
      // A file that grows for ever would be read for ever.
      guard done <= size else { throw .changed(path: file.path) }
    }
    guard done == size else { throw .changed(path: file.path) }
    return FileDigest(size: done, hash: whole.finish()[0], chunks: chunks?.finish() ?? [])
  }
}

/// The memory of one block. The owner waits before it changes the block, or releases it.
private final class BlockSlot {
  let buffer: UnsafeMutableRawBufferPointer
  let users = DispatchGroup()

  init(bytes: Int) {
    buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes, alignment: 4_096)
  }

  deinit { buffer.deallocate() }

  /// Waits until no queue uses the block.
  func wait() { users.wait() }
}

/// The hashes of pieces of content, or of the whole, on a thread beside the caller's.
private final class HashQueue: @unchecked Sendable {
  private let queue = DispatchQueue(label: "ferry-hash", qos: .userInitiated)
  private let pieceBytes: Int64
  // Used on the queue alone.
  private var digest = SHA256()
  private var inPiece: Int64 = 0
  private var hashes: [ContentHash] = []

  /// - Parameter pieceBytes: Bytes of a piece; by default all is one.
  init(pieceBytes: Int64 = .max) { self.pieceBytes = pieceBytes }

  /// Adds the next part of the content.
  ///
  /// - Parameter slot: The part's owner, which lends it to the queue; `nil` hashes at once.
  func add(_ bytes: UnsafeRawBufferPointer, _ slot: BlockSlot?) {
    guard let slot else { return queue.sync { enqueue(bytes) } }
    nonisolated(unsafe) let bytes = bytes
    queue.async(group: slot.users) { self.enqueue(bytes) }
  }

  /// Waits for all parts, and returns the hash of each piece; of nothing, one hash.
  func finish() -> [ContentHash] {
    queue.sync {
      if inPiece > 0 || hashes.isEmpty { endPiece() }
      return hashes
    }
  }

  private func enqueue(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = rest.prefix(Int(clamping: pieceBytes - inPiece))
      digest.update(UnsafeRawBufferPointer(rebasing: part))
      inPiece += Int64(part.count)
      if inPiece == pieceBytes { endPiece() }
      rest = rest.dropFirst(part.count)
    }
  }

  private func endPiece() {
    var piece = SHA256()
    swap(&piece, &digest)
    hashes.append(ContentHash(digest: piece.finish()))
    inPiece = 0
  }
}

extension ContentHash {
  /// Creates the hash from a digest of ``SHA256``.
  package init(digest: [UInt8]) {
    guard let hash = ContentHash(digest) else { preconditionFailure("no digest of SHA-256") }
    self = hash
  }

  /// Creates the hash of content in memory.
  package init(of bytes: [UInt8]) { self.init(digest: SHA256.digest(of: bytes)) }
}

/// Parts of files to send elsewhere. It blocks.
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

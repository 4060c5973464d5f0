import FerryCryptography
import FerryFiles
import FerryProtocol
import Foundation

/// A fetched file, perhaps encrypted. All calls block.
struct StagedFile: Sendable {
  let path: String
  let cipher: PartialCipher?

  private static let blockBytes = 1 << 20

  /// Returns size, hash and hashes of chunks; `nil` if there is no file.
  func facts(chunkSize: Int64) throws(FileStoreError) -> DraftRule.Fetched? {
    guard var blocks = try blocks() else { return nil }
    var whole = SHA256()
    var part = SHA256()
    var chunks: [ContentHash] = []
    var size: Int64 = 0
    while let block = try blocks.next() {
      var start = 0
      while start < block.count {
        let rest = chunkSize - size % chunkSize
        let end = min(block.count, start + Int(rest))
        part.update(block, start..<end)
        size += Int64(end - start)
        start = end
        guard size % chunkSize == 0 else { continue }
        if let hash = ContentHash(part.finish()) { chunks.append(hash) }
        part = SHA256()
      }
      whole.update(block)
    }
    if size % chunkSize > 0, let hash = ContentHash(part.finish()) { chunks.append(hash) }
    guard let hash = ContentHash(whole.finish()) else { return nil }
    return DraftRule.Fetched(size: size, hash: hash, chunks: chunks.count > 1 ? chunks : [])
  }

  /// Returns the hash; `nil` if there is no file.
  func hash() throws(FileStoreError) -> ContentHash? {
    guard var blocks = try blocks() else { return nil }
    var hash = SHA256()
    while let block = try blocks.next() { hash.update(block) }
    return ContentHash(hash.finish())
  }

  /// Returns all bytes, at most `limit`; `nil` if there is no file, or a larger one.
  func bytes(limit: Int64) throws(FileStoreError) -> [UInt8]? {
    guard let size = NamedFile.size(of: path), size <= limit, var blocks = try blocks() else {
      return nil
    }
    var all: [UInt8] = []
    while let block = try blocks.next() { all += block }
    return all
  }

  /// Replaces the content.
  func write(_ bytes: [UInt8]) throws(FileStoreError) {
    let file = try Self.open(path, O_RDWR | O_CREAT | O_TRUNC)
    try file.write(cipher.applied(to: bytes, at: 0), at: 0)
  }

  /// Moves the content to another file; it may be encrypted in another way.
  func move(to other: StagedFile) throws(FileStoreError) {
    if cipher == nil, other.cipher == nil {
      guard rename(path, other.path) == 0 else {
        throw FileStoreError(errno: errno, "\(path) cannot be moved")
      }
      return
    }
    guard var blocks = try blocks() else { return }
    let file = try Self.open(other.path, O_RDWR | O_CREAT | O_TRUNC)
    var offset: Int64 = 0
    while let block = try blocks.next() {
      try file.write(other.cipher.applied(to: block, at: offset), at: offset)
      offset += Int64(block.count)
    }
    try NamedFile.remove(path)
  }

  /// The content from the start, block by block.
  private struct Blocks: ~Copyable {
    let file: RandomAccessFile
    let cipher: PartialCipher?
    var offset: Int64 = 0

    mutating func next() throws(FileStoreError) -> [UInt8]? {
      let block = try file.read(at: offset, count: StagedFile.blockBytes)
      if block.isEmpty { return nil }
      defer { offset += Int64(block.count) }
      return cipher.applied(to: block, at: offset)
    }
  }

  private func blocks() throws(FileStoreError) -> Blocks? {
    guard NamedFile.size(of: path) != nil else { return nil }
    return Blocks(file: try Self.open(path, O_RDONLY), cipher: cipher)
  }

  private static func open(_ path: String, _ flags: Int32) throws(FileStoreError)
    -> RandomAccessFile
  {
    let system = SystemFileCalls()
    let descriptor = system.open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw FileStoreError(errno: errno, "\(path) cannot be opened") }
    return RandomAccessFile(descriptor: descriptor, path: path, system)
  }
}

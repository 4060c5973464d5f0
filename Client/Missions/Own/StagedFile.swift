import FerryFiles
import Foundation

/// A fetched file, perhaps encrypted. All calls block.
struct StagedFile: Sendable {
  let path: String
  let cipher: PartialCipher?
  let system: any FileCalls

  private static let blockBytes = 1 << 20

  /// The size in bytes; `nil` if there is no file.
  var size: Int64? { NamedFile.size(of: path) }

  /// Reads the whole content. Returns the facts about it; `nil` if there is no file.
  ///
  /// - Parameter partSize: the bytes of each part to hash; `nil` for none.
  func facts(partSize: Int64? = nil) throws(FileStoreError) -> ContentFacts? {
    guard var blocks = try blocks() else { return nil }
    var digest = ContentDigest(partSize: partSize)
    while let block = try blocks.next() { digest.update(block) }
    return digest.finish()
  }

  /// Returns all bytes, at most `limit`; `nil` if there is no file, or a larger one.
  func bytes(limit: Int64) throws(FileStoreError) -> [UInt8]? {
    guard let size, size <= limit, var blocks = try blocks() else { return nil }
    var all: [UInt8] = []
    while let block = try blocks.next() { all += block }
    return all
  }

  /// Replaces the content.
  func write(_ bytes: [UInt8]) throws(FileStoreError) {
    let file = try open(O_RDWR | O_CREAT | O_TRUNC)
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
    let file = try other.open(O_RDWR | O_CREAT | O_TRUNC)
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
    guard size != nil else { return nil }
    return Blocks(file: try open(O_RDONLY), cipher: cipher)
  }

  private func open(_ flags: Int32) throws(FileStoreError) -> RandomAccessFile {
    let descriptor = system.open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw FileStoreError(errno: errno, "\(path) cannot be opened") }
    return RandomAccessFile(descriptor: descriptor, path: path, system)
  }
}

import FerryProtocol
import Foundation

/// A fetched file, perhaps encrypted (``ContentSeal``). All calls block.
struct StagedFile: Sendable {
  let path: String
  let seal: ContentSeal?
  let system: any FileCalls

  private static let blockBytes = 1 << 20

  /// The size of the content in bytes; `nil` if there is no file.
  var size: Int64? {
    let bytes = NamedFile.size(of: path)
    return seal == nil ? bytes : bytes.map { ContentSeal.contentBytes(inFile: $0) }
  }

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

  /// Moves the content to another path. Returns true if it is there.
  ///
  /// It was hashed while it was written, and was on the disk before its facts were recorded. So it
  /// is read only after a process was killed during a move.
  func move(_ content: StoredContent, to path: String) throws(FileStoreError) -> Bool {
    if size == content.size {
      guard rename(self.path, path) == 0 else {
        throw FileStoreError(errno: errno, "\(self.path) cannot be moved")
      }
      return true
    }
    let target = StagedFile(path: path, seal: seal, system: system)
    guard target.size == content.size else { return false }
    return try target.facts()?.hash == content.hash
  }

  /// The content from the start, block by block.
  private struct Blocks: ~Copyable {
    let file: RandomAccessFile
    let size: Int64
    var reader: SealedReader?
    var offset: Int64 = 0

    mutating func next() throws(FileStoreError) -> [UInt8]? {
      let count = Int(min(Int64(StagedFile.blockBytes), size - offset))
      guard count > 0 else { return nil }
      let block: [UInt8]
      if reader == nil {
        block = try file.read(at: offset, count: count)
      } else {
        block = try reader?.read(file, from: offset, count: count) ?? []
      }
      offset += Int64(block.count)
      return block.isEmpty ? nil : block
    }
  }

  private func blocks() throws(FileStoreError) -> Blocks? {
    guard let size else { return nil }
    let file = try open(O_RDONLY)
    guard let seal else { return Blocks(file: file, size: size) }
    guard let label = try seal.label(of: file) else {
      throw FileStoreError(.damaged, "\(path) was encrypted with another key")
    }
    return Blocks(file: file, size: size, reader: SealedReader(seal.format(label, size: size)))
  }

  private func open(_ flags: Int32) throws(FileStoreError) -> RandomAccessFile {
    let descriptor = system.open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw FileStoreError(errno: errno, "\(path) cannot be opened") }
    return RandomAccessFile(descriptor: descriptor, path: path, system)
  }
}

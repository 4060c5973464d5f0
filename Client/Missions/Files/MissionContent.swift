import FerryCryptography
import FerryPlatform
import FerryProtocol
import FerrySQLite
import Synchronization

/// The content of an item, open for reads at any offset. It checks every returned byte: sealed
/// content by authentication tags, other content by the manifest's hashes.
public final class MissionContent: Sendable {
  /// The size in bytes.
  public let size: Int64
  /// The hash of the content, its identifier.
  public let hash: ContentHash
  /// Reads a number of bytes within the content from an offset.
  public typealias Read =
    @Sendable (_ offset: Int64, _ count: Int) async throws(MissionError) -> [UInt8]

  private let read: Read

  /// Creates content of another file store. `read` returns the bytes of a range within it, after it
  /// has checked them.
  public init(_ content: StoredContent, read: @escaping Read) {
    size = content.size
    hash = content.hash
    self.read = read
  }

  convenience init(
    _ file: consuming RandomAccessFile, reader: PartReader, on executor: any WorkExecutor
  ) {
    let box = FileBox(file, reader)
    self.init(reader.content) { (offset, count) async throws(MissionError) in
      try await executor.perform(MissionError.self) { try box.read(from: offset, count: count) }
    }
  }

  /// Reads up to `count` bytes from an offset; fewer at the end.
  ///
  /// - Throws: ``MissionError/Kind/damaged`` if the content differs from the downloaded one.
  public func read(from offset: Int64, count: Int) async throws(MissionError) -> [UInt8] {
    guard offset >= 0, offset < size, count > 0 else { return [] }
    let count = Int(min(Int64(count), size - offset))
    return try await read(offset, count)
  }

  /// Reads the whole content into memory.
  public func readAll() async throws(MissionError) -> [UInt8] {
    try await read(from: 0, count: Int(size))
  }
}

/// An open file with the hashes.
private final class FileBox: Sendable {
  private let file: RandomAccessFile
  private let reader: Mutex<PartReader>

  init(_ file: consuming RandomAccessFile, _ reader: PartReader) {
    self.file = file
    self.reader = Mutex(reader)
  }

  func read(from offset: Int64, count: Int) throws -> [UInt8] {
    try reader.withLock { reader in try reader.read(file, from: offset, count: count) }
  }
}

/// Reads content from the file, and checks it.
struct PartReader: Sendable {
  let content: StoredContent
  private var sealed: SealedReader?
  /// The bytes of a part with a known hash.
  private let partSize: Int64
  private let parts: [ContentHash]
  private var isChecked: [Bool]

  init(
    content: StoredContent, format: SealedFile?, partSize: Int64, parts: [ContentHash]
  ) throws(MissionError) {
    if !parts.isEmpty {
      guard partSize > 0, (content.size + partSize - 1) / partSize == parts.count else {
        throw MissionError(.badManifest, "the number of chunk hashes does not fit the size")
      }
    }
    self.content = content
    sealed = format.map { SealedReader($0) }
    self.partSize = parts.isEmpty ? max(1, content.size) : partSize
    self.parts = parts.isEmpty ? [content.hash] : parts
    isChecked = [Bool](repeating: false, count: self.parts.count)
  }

  /// Reads `count` bytes within the content.
  mutating func read(
    _ file: borrowing RandomAccessFile, from offset: Int64, count: Int
  ) throws -> [UInt8] {
    if sealed != nil { return try sealed?.read(file, from: offset, count: count) ?? [] }
    for part in (offset / partSize)...((offset + Int64(count) - 1) / partSize) {
      try check(Int(part), of: file)
    }
    return try file.read(at: offset, count: count)
  }

  /// Reads without the manifest's hashes; sealed content is still checked by authentication tags.
  func unchecked(
    _ file: borrowing RandomAccessFile, from offset: Int64, count: Int
  ) throws(FileStoreError) -> [UInt8] {
    guard var sealed else { return try file.read(at: offset, count: count) }
    return try sealed.read(file, from: offset, count: count)
  }

  private mutating func check(_ part: Int, of file: borrowing RandomAccessFile) throws {
    if isChecked[part] { return }
    var digest = SHA256()
    var offset = Int64(part) * partSize
    let end = min(offset + partSize, content.size)
    while offset < end {
      let block = try file.read(
        at: offset, count: Int(min(Int64(RandomAccessFile.blockBytes), end - offset)))
      if block.isEmpty { break }
      digest.update(block)
      offset += Int64(block.count)
    }
    guard ContentHash(digest.finish()) == parts[part] else {
      throw MissionError(.damaged, "\(file.path) differs from the downloaded file")
    }
    isChecked[part] = true
  }
}

extension MissionError: ConvertingError {
  /// Converts any error; those of files keep their meaning.
  package init(converting error: any Error) {
    switch error {
    case let error as MissionError: self = error
    case let error as FileStoreError:
      let kind: Kind =
        switch error.kind {
        case .diskFull: .diskFull
        case .damaged: .damaged
        case .wrongKey: .wrongKey
        case .cancelled: .cancelled
        case .index: .database
        case .notFound, .badKey, .limitReached, .files: .files
        }
      self.init(kind, error.message)
    case let error as SQLiteError:
      self.init(error.isDiskFull ? .diskFull : .database, error.message)
    default: self.init(.files, String(describing: error))
    }
  }
}

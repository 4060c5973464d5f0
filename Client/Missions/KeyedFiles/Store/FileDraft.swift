import FerryCryptography
import FerryPlatform
import FerryProtocol
import Foundation

/// A version during its writing; all calls block. The file is locked, so no other process treats it
/// as a leftover.
struct FileDraft: ~Copyable {
  let version: FileVersion
  private let file: RandomAccessFile
  private let folders: FileFolders
  private let keys: FileKeys
  /// The most bytes of the draft on disk.
  private let bytesMax: Int64
  private var hash: SHA256? = SHA256()
  private var size: Int64 = 0
  /// Encrypted parts so far.
  private var parts: Int64 = 0
  /// The bytes of the part not encrypted yet.
  private var part: [UInt8] = []

  /// Creates an empty file.
  static func begin(
    of name: ContentHash, suffix: String, in folders: FileFolders, keys: FileKeys, bytesMax: Int64
  ) throws(FileStoreError) -> FileDraft {
    let new = try folders.folder("new")
    while true {
      let version = FileVersion(
        name: name, suffix: suffix, id: SecureRandom.bytes(FileKeys.idBytes), isPending: true)
      let file = try new.makeFile(version.draft)
      // Between both calls another process may treat it as a leftover and remove it.
      guard file.lock(), file.isNamed(version.draft, in: new) else { continue }
      do throws(FileStoreError) {
        try keys.sealed(name, id: version.id, size: 0)?.begin(file)
      } catch {
        try? new.removeFile(version.draft)
        throw error
      }
      return FileDraft(version, file, folders, keys, bytesMax)
    }
  }

  private init(
    _ version: FileVersion, _ file: consuming RandomAccessFile, _ folders: FileFolders,
    _ keys: FileKeys, _ bytesMax: Int64
  ) {
    self.version = version
    self.file = file
    self.folders = folders
    self.keys = keys
    self.bytesMax = bytesMax
  }

  /// Appends bytes.
  mutating func append(_ bytes: [UInt8]) throws(FileStoreError) {
    let (sum, isHuge) = size.addingReportingOverflow(Int64(bytes.count))
    guard !isHuge, bytesOnDisk(size: sum) <= bytesMax else {
      throw FileStoreError(
        .limitReached, "the file has more bytes than the store's limit allows (\(bytesMax))")
    }
    hash?.update(bytes)
    if keys.isSealed {
      try seal(bytes)
    } else {
      try file.write(bytes, at: size)
    }
    size = sum
  }

  /// Defers a full part until more bytes follow: the last part is sealed as such.
  private mutating func seal(_ bytes: [UInt8]) throws(FileStoreError) {
    let limit = Int(SealedFile.partBytes)
    var start = 0
    while start < bytes.count {
      if part.count == limit { try sealPart(isLast: false) }
      let end = min(bytes.count, start + limit - part.count)
      part += bytes[start..<end]
      start = end
    }
  }

  private mutating func sealPart(isLast: Bool) throws(FileStoreError) {
    try keys.sealed(version.name, id: version.id, size: size)?.write(
      part, as: parts, isLast: isLast, to: file, nonce: SecureRandom.bytes(AESGCM.nonceBytes))
    parts += 1
    part.removeAll(keepingCapacity: true)
  }

  /// Ends the content and writes it to the disk, name included. Returns the hash and size.
  mutating func finish() throws(FileStoreError) -> (hash: ContentHash, size: Int64) {
    if keys.isSealed { try sealPart(isLast: true) }
    try file.protect()
    try file.sync()
    try folders.folder("new").sync()
    guard let digest = hash.take()?.finish(), let hash = ContentHash(digest) else {
      throw FileStoreError(.files, "\(file.path) was finished twice")
    }
    return (hash, size)
  }

  /// Removes the file.
  func discard() { try? folders.folder("new").removeFile(version.draft) }

  private func bytesOnDisk(size: Int64) -> Int64 {
    keys.bytesOnDisk(version.name, id: version.id, size: size)
  }
}

/// Writes a draft on a thread, one block at a time, so drafts can share the thread.
actor DraftWriter {
  nonisolated let version: FileVersion
  private var draft: FileDraft?
  private var source: RandomAccessFile?
  private var position: Int64 = 0
  private let executor: any WorkExecutor

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// The largest block of one turn.
  private static let blockBytes = 4 << 20

  init(_ draft: consuming FileDraft, on executor: any WorkExecutor) {
    version = draft.version
    self.draft = consume draft
    self.executor = executor
  }

  func append(_ bytes: [UInt8]) throws(FileStoreError) { try draft?.append(bytes) }

  /// Opens the file to copy.
  func open(_ path: String, _ system: any FileCalls) throws(FileStoreError) {
    let descriptor = system.open(path, O_RDONLY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw FileStoreError(errno: errno, "\(path) cannot be opened") }
    let file = RandomAccessFile(descriptor: descriptor, path: path, system)
    _ = try file.size()
    source = consume file
  }

  /// Copies a block of the file. Returns true if there may be more.
  func copyBlock() throws(FileStoreError) -> Bool {
    let bytes = try source?.read(at: position, count: Self.blockBytes) ?? []
    if bytes.isEmpty { return false }
    position += Int64(bytes.count)
    try draft?.append(bytes)
    return true
  }

  func finish() throws(FileStoreError) -> (hash: ContentHash, size: Int64) {
    guard let end = try draft?.finish() else {
      throw FileStoreError(.files, "the file was closed")
    }
    return end
  }

  func discard() {
    draft?.discard()
    draft = nil
  }

  /// Releases the file and the lock.
  func close() {
    draft = nil
    source = nil
  }
}

import FerryCryptography
import FerryFiles
import FerryProtocol
import Foundation

/// The folders of a mission store, and their operations; all of them block. They throw
/// ``MissionError`` and ``FileStoreError``; ``DiskFileStore`` converts the latter.
///
/// - `objects/ab/<sha256>`: complete content, once each
/// - `partial/<sha256>`: content during a download
/// - `bundles/<mission>/<version>/…`: names of items, hard links to content
/// - `locks/…`
struct StoreFolders: Sendable {
  let root: String
  /// The cipher of content at rest, if there is a key.
  let cipher: AESGCM?
  /// The key of partial files, if there is one.
  private let partialKey: [UInt8]?
  let system: any FileCalls

  /// Creates the folders.
  init(
    root: String, cipher: AESGCM?, partialKey: [UInt8]?, system: any FileCalls
  ) throws {
    self.root = root
    self.cipher = cipher
    self.partialKey = partialKey
    self.system = system
    let folder = try Directory(making: root, system)
    for name in ["objects", "partial", "bundles", "locks"] { _ = try folder.making(name) }
    // A name is on the disk if the folder is: all files are below these folders. The process that
    // created them may have died before the sync.
    try folder.sync()
    try Directory.syncName(of: root, system)
  }

  func folder(_ name: String) throws -> Directory {
    let root = try Directory(making: root, system)
    return try root.making(name)
  }

  // MARK: Content

  /// Opens the folder of a content's object.
  func shelf(of hash: ContentHash, making: Bool = false) throws -> Directory? {
    let objects = try folder("objects")
    return try objects.folder(String(hash.description.prefix(2)), making: making)
  }

  /// Returns the size of a content's file in bytes.
  func storedSize(_ content: StoredContent) -> Int64 {
    guard let cipher else { return content.size }
    return SealedFile(content, cipher: cipher).fileSize
  }

  func partialCipher(of hash: ContentHash) -> PartialCipher? {
    partialKey.flatMap { PartialCipher(key: $0, content: hash) }
  }

  func has(_ content: StoredContent) throws -> Bool {
    guard let shelf = try shelf(of: content.hash),
      let entry = try shelf.entry(content.hash.description)
    else { return false }
    return entry.kind == .file && entry.size == storedSize(content)
  }

  func isIntact(
    _ content: StoredContent, while goesOn: (Int64) -> Bool
  ) throws -> Bool {
    guard try has(content), let shelf = try shelf(of: content.hash) else { return false }
    let file = try shelf.openFile(content.hash.description)
    if let cipher {
      return try SealedFile(content, cipher: cipher).hash(of: file, while: goesOn) == content.hash
    }
    return try file.hash(while: goesOn) == content.hash
  }

  func adopt(_ content: StoredContent) throws {
    let name = content.hash.description
    guard try folder("partial").entry(name)?.size == content.size else {
      throw MissionError(.damaged, "\(root)/partial/\(name) has a wrong size")
    }
    guard let cipher else { return try adoptPlain(name, content.hash) }
    do {
      try seal(content, cipher)
    } catch {
      try folder("partial").removeFile(name + Self.sealingSuffix)
      throw error
    }
    try folder("partial").removeFile(name)
  }

  private func adoptPlain(_ name: String, _ hash: ContentHash) throws {
    let partial = try folder("partial")
    guard let shelf = try shelf(of: hash, making: true) else { return }
    try partial.openFile(name).protect()
    try partial.move(name, to: shelf, as: name)
  }

  private func seal(_ content: StoredContent, _ cipher: AESGCM) throws {
    let name = content.hash.description
    let partial = try folder("partial")
    guard let shelf = try shelf(of: content.hash, making: true) else { return }
    let sealed = try partial.makeFile(name + Self.sealingSuffix)
    try SealedFile(content, cipher: cipher).seal(
      try partial.openFile(name), partialCipher(of: content.hash), into: sealed)
    try sealed.protect()
    try partial.move(name + Self.sealingSuffix, to: shelf, as: name)
  }

  func partialBytes(of hash: ContentHash, limit: Int64) throws -> [UInt8] {
    let file = try folder("partial").openFile(hash.description)
    let size = try file.size()
    guard size <= limit else { throw MissionError(.damaged, "\(file.path) is too large") }
    return partialCipher(of: hash).applied(to: try file.read(at: 0, count: Int(size)), at: 0)
  }

  func copy(_ part: StoredPart, to hash: ContentHash, at offset: Int64) throws -> Bool {
    guard let bytes = try bytes(of: part) else { return false }
    let partial = try folder("partial")
    let descriptor = system.openat(
      partial.descriptor, hash.description, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw FileStoreError(errno: errno, "\(partial.path)/\(hash) cannot be opened")
    }
    let file = RandomAccessFile(descriptor: descriptor, path: "\(partial.path)/\(hash)", system)
    try file.write(partialCipher(of: hash).applied(to: bytes, at: offset), at: offset)
    return true
  }

  /// Returns the bytes of a part of complete content; `nil` if they are gone or damaged.
  private func bytes(of part: StoredPart) throws -> [UInt8]? {
    do {
      let bytes = try read(part)
      return bytes.flatMap { ContentHash(SHA256.digest(of: $0)) } == part.hash ? bytes : nil
    } catch let error as FileStoreError where error.kind == .damaged {
      return nil
    }
  }

  private func read(_ part: StoredPart) throws -> [UInt8]? {
    guard let shelf = try shelf(of: part.content.hash), try has(part.content) else { return nil }
    let source = try shelf.openFile(part.content.hash.description)
    let reader = try PartReader(content: part.content, cipher: cipher, partSize: 0, parts: [])
    return try reader.unchecked(source, from: part.offset, count: part.length)
  }

  func removeObject(_ hash: ContentHash) throws {
    try shelf(of: hash)?.removeFile(hash.description)
  }

  func removePartial(_ hash: ContentHash) throws {
    try folder("partial").removeFile(hash.description)
  }

  static let sealingSuffix = ".sealing"

  // MARK: The disk

  func freeBytes() throws -> Int64 { try system.freeBytes(at: root) }

  /// With more files than this, the operating system first writes all changes; those already on the
  /// disk cost almost nothing.
  private static let syncedOneByOne = 64

  func sync(_ hashes: [ContentHash]) throws {
    if hashes.count > Self.syncedOneByOne { system.sync() }
    for hash in hashes { try shelf(of: hash)?.openFile(hash.description).sync() }
    // Each folder is written only once.
    var synced: Set<Substring> = []
    for hash in hashes where synced.insert(hash.description.prefix(2)).inserted {
      try shelf(of: hash)?.sync()
    }
    try folder("objects").sync()
  }
}

extension SealedFile {
  /// Creates the format of complete content.
  init(_ content: StoredContent, cipher: AESGCM) {
    self.init(cipher: cipher, binding: .content(content.hash), size: content.size)
  }

  /// Encrypts the whole of one file into another. `partial` is the encryption of the first file.
  fileprivate func seal(
    _ plain: borrowing RandomAccessFile, _ partial: PartialCipher?,
    into file: borrowing RandomAccessFile
  ) throws {
    try begin(file)
    for part in 0..<partCount {
      let place = part * Self.partBytes
      let content = partial.applied(
        to: try plain.read(at: place, count: length(of: part)), at: place)
      guard content.count == length(of: part) else {
        throw MissionError(.damaged, "\(plain.path) was shortened")
      }
      try write(
        content, as: part, isLast: part == partCount - 1, to: file,
        nonce: SecureRandom.bytes(AESGCM.nonceBytes))
    }
  }
}

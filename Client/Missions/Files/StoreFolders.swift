import FerryCryptography
import FerryProtocol
import Foundation

/// The folders of a mission store, and their operations; all of them block.
///
/// - `objects/ab/<sha256>`: complete content, once each
/// - `partial/<sha256>`: content that is being fetched
/// - `bundles/<mission>/<version>/…`: names of items, hard links to content
/// - `locks/…`
struct StoreFolders: Sendable {
  let root: String
  /// The cipher of content at rest, if there is a key.
  let cipher: AESGCM?
  /// The key of content that is being fetched, if there is one.
  private let partialKey: [UInt8]?
  let system: any FileCalls

  /// Creates the folders.
  init(
    root: String, cipher: AESGCM?, partialKey: [UInt8]?, system: any FileCalls
  ) throws(MissionError) {
    self.root = root
    self.cipher = cipher
    self.partialKey = partialKey
    self.system = system
    let folder = try Directory(making: root, system)
    for name in ["objects", "partial", "bundles", "locks"] { _ = try folder.making(name) }
    // A name is on the disk if its folder is: all files are below these folders. The process that
    // created them may have died before that.
    try folder.sync()
    let parent = root.lastIndex(of: "/").map { String(root[..<$0]) } ?? "."
    try Self.sync(parent.isEmpty ? "/" : parent, system)
  }

  /// Writes a folder to the disk; does nothing if the process may not read it.
  private static func sync(_ path: String, _ system: any FileCalls) throws(MissionError) {
    let folder: Directory
    do { folder = try Directory(making: path, system) } catch { return }
    try folder.sync()
  }

  func folder(_ name: String) throws(MissionError) -> Directory {
    let root = try Directory(making: root, system)
    return try root.making(name)
  }

  // MARK: Content

  /// Opens the folder of a content's object.
  func shelf(of hash: ContentHash, making: Bool = false) throws(MissionError) -> Directory? {
    let objects = try folder("objects")
    return try objects.folder(String(hash.description.prefix(2)), making: making)
  }

  /// Returns the size of a content's file in bytes.
  func storedSize(_ content: StoredContent) -> Int64 {
    guard let cipher else { return content.size }
    return SealedFile(cipher: cipher, hash: content.hash, size: content.size).fileSize
  }

  func partialCipher(of hash: ContentHash) -> PartialCipher? {
    partialKey.flatMap { PartialCipher(key: $0, content: hash) }
  }

  func has(_ content: StoredContent) throws(MissionError) -> Bool {
    guard let shelf = try shelf(of: content.hash),
      let entry = try shelf.entry(content.hash.description)
    else { return false }
    return entry.kind == .file && entry.size == storedSize(content)
  }

  func isIntact(
    _ content: StoredContent, while goesOn: (Int64) -> Bool
  ) throws(MissionError) -> Bool {
    guard try has(content), let shelf = try shelf(of: content.hash) else { return false }
    let file = try shelf.openFile(content.hash.description)
    if let cipher {
      let format = SealedFile(cipher: cipher, hash: content.hash, size: content.size)
      return try format.isIntact(file, while: goesOn)
    }
    return try file.hash(while: goesOn) == content.hash
  }

  func adopt(_ content: StoredContent) throws(MissionError) {
    let name = content.hash.description
    let partial = try folder("partial")
    guard let shelf = try shelf(of: content.hash, making: true) else { return }
    let file = try partial.openFile(name)
    guard try file.size() == content.size else {
      throw MissionError(.damaged, "\(file.path) has a wrong size")
    }
    guard let cipher else {
      try file.protect()
      return try partial.move(name, to: shelf, as: name)
    }
    let sealing = name + Self.sealingSuffix
    let sealed = try partial.makeFile(sealing)
    do {
      let format = SealedFile(cipher: cipher, hash: content.hash, size: content.size)
      try format.seal(file, partialCipher(of: content.hash), into: sealed) {
        SecureRandom.bytes(AESGCM.nonceBytes)
      }
      try sealed.protect()
      try partial.move(sealing, to: shelf, as: name)
    } catch {
      try partial.removeFile(sealing)
      throw error
    }
    try partial.removeFile(name)
  }

  func partialBytes(of hash: ContentHash, limit: Int64) throws(MissionError) -> [UInt8] {
    let file = try folder("partial").openFile(hash.description)
    let size = try file.size()
    guard size <= limit else { throw MissionError(.damaged, "\(file.path) is too large") }
    return partialCipher(of: hash).applied(to: try file.read(at: 0, count: Int(size)), at: 0)
  }

  func copy(_ part: StoredPart, to hash: ContentHash, at offset: Int64) throws(MissionError) -> Bool
  {
    guard let shelf = try shelf(of: part.content.hash), try has(part.content) else { return false }
    let source = try shelf.openFile(part.content.hash.description)
    let reader = try PartReader(content: part.content, cipher: cipher, partSize: 0, parts: [])
    let bytes: [UInt8]
    do {
      bytes = try reader.unchecked(source, from: part.offset, count: part.length)
    } catch  where error.kind == .damaged {
      return false
    }
    guard ContentHash(SHA256.digest(of: bytes)) == part.hash else { return false }
    let partial = try folder("partial")
    let descriptor = system.openat(
      partial.descriptor, hash.description, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw MissionError(errno: errno, "\(partial.path)/\(hash) cannot be opened")
    }
    let file = RandomAccessFile(descriptor: descriptor, path: "\(partial.path)/\(hash)", system)
    try file.write(partialCipher(of: hash).applied(to: bytes, at: offset), at: offset)
    return true
  }

  func removeObject(_ hash: ContentHash) throws(MissionError) {
    try shelf(of: hash)?.removeFile(hash.description)
  }

  func removePartial(_ hash: ContentHash) throws(MissionError) {
    try folder("partial").removeFile(hash.description)
  }

  static let sealingSuffix = ".sealing"

  // MARK: The disk

  func freeBytes() throws(MissionError) -> Int64 {
    var facts = statvfs()
    guard system.room(root, &facts) == 0 else {
      throw MissionError(errno: errno, "the free space at \(root) is unknown")
    }
    let (bytes, isHuge) = Int64(clamping: facts.f_bavail).multipliedReportingOverflow(
      by: Int64(clamping: facts.f_frsize))
    return isHuge ? .max : bytes
  }

  /// With more files than this, the operating system first writes all changes; those already on the
  /// disk cost almost nothing.
  private static let syncedOneByOne = 64

  func sync(_ hashes: [ContentHash]) throws(MissionError) {
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

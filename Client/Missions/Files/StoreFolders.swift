import FerryCryptography
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
  /// The encryption of content, if there is a key.
  let seal: ContentSeal?
  let system: any FileCalls

  /// Creates the folders.
  init(root: String, seal: ContentSeal?, system: any FileCalls) throws {
    self.root = root
    self.seal = seal
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
    seal == nil ? content.size : ContentSeal.fileSize(content.size)
  }

  /// Returns the format of complete content; `nil` without encryption. Throws if the file has another
  /// key, or another content.
  func format(
    of content: StoredContent, in file: borrowing RandomAccessFile
  ) throws(FileStoreError) -> SealedFile? {
    guard let seal else { return nil }
    guard let label = try seal.label(of: file), label.hash == content.hash else {
      throw FileStoreError(.damaged, "\(file.path) was altered, or encrypted with another key")
    }
    return seal.format(label, size: content.size)
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
    do throws(FileStoreError) {
      guard let format = try format(of: content, in: file) else {
        return try file.hash(while: goesOn) == content.hash
      }
      return try format.hash(of: file, while: goesOn) == content.hash
    } catch {
      if error.kind == .damaged { return false }
      throw error
    }
  }

  func adopt(_ content: StoredContent) throws {
    let name = content.hash.description
    let partial = try folder("partial")
    guard try partial.entry(name)?.size == storedSize(content) else {
      throw MissionError(.damaged, "\(root)/partial/\(name) has a wrong size")
    }
    guard let shelf = try shelf(of: content.hash, making: true) else { return }
    if let seal {
      let file = try openPartial(content.hash)
      guard var label = try seal.label(of: file) else {
        throw MissionError(.damaged, "\(file.path) was encrypted with another key")
      }
      label.hash = content.hash
      try seal.write(label, to: file)
    }
    try partial.openFile(name).protect()
    try partial.move(name, to: shelf, as: name)
  }

  /// Opens a partial file for writing, and creates an absent one.
  private func openPartial(_ hash: ContentHash) throws -> RandomAccessFile {
    let partial = try folder("partial")
    let descriptor = system.openat(
      partial.descriptor, hash.description, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw FileStoreError(errno: errno, "\(partial.path)/\(hash) cannot be opened")
    }
    return RandomAccessFile(descriptor: descriptor, path: "\(partial.path)/\(hash)", system)
  }

  func partialBytes(of hash: ContentHash, limit: Int64) throws -> [UInt8] {
    let file = try folder("partial").openFile(hash.description)
    let size = try file.size()
    let count = seal == nil ? size : ContentSeal.contentBytes(inFile: size)
    guard count <= limit else { throw MissionError(.damaged, "\(file.path) is too large") }
    guard let seal else { return try file.read(at: 0, count: Int(count)) }
    guard let label = try seal.label(of: file) else {
      throw MissionError(.damaged, "\(file.path) was encrypted with another key")
    }
    var reader = SealedReader(seal.format(label, size: count))
    return try reader.read(file, from: 0, count: Int(count))
  }

  func copy(_ part: StoredPart, to content: StoredContent, at offset: Int64) throws -> Bool {
    guard let bytes = try bytes(of: part) else { return false }
    let file = try openPartial(content.hash)
    if let seal {
      let format = seal.format(try seal.begin(file), size: content.size)
      try format.write(bytes, at: offset, to: file)
    } else {
      try file.write(bytes, at: offset)
    }
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
    let format = try format(of: part.content, in: source)
    let reader = try PartReader(content: part.content, format: format, partSize: 0, parts: [])
    return try reader.unchecked(source, from: part.offset, count: part.length)
  }

  func removeObject(_ hash: ContentHash) throws {
    try shelf(of: hash)?.removeFile(hash.description)
  }

  func removePartial(_ hash: ContentHash) throws {
    try folder("partial").removeFile(hash.description)
  }

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

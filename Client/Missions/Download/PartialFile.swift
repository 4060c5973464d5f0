import FerryCryptography
import FerryPlatform
import FerryProtocol
import Foundation

/// A file during a download: content at its own offsets and, until it is complete, marks of each
/// chunk's progress behind it.
///
/// The marks cost a write of eight bytes beside each write of content. So a process may be killed
/// at any moment and lose almost nothing: the operating system has the writes. The marks count only
/// until the system restarts, because the disk may lack some of the writes then.
actor PartialFile {
  nonisolated let path: String
  private let layout: PartialLayout
  private let seal: ContentSeal?
  private let executor: any WorkExecutor
  private let system: any FileCalls
  private let isSizeKnown: Bool
  private var opened: OpenFile?
  private var descriptor: Int32 = -1
  private var label = ContentSeal.Label()
  private var buffer = SealingBuffer()

  /// Blocking calls stay on one thread.
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Creates a partial file; ``open(bootID:)`` is the first access.
  ///
  /// - Parameter isSizeKnown: false for content without marks, written from the start. The end of
  ///   it gets the size.
  init(
    path: String, layout: PartialLayout, seal: ContentSeal? = nil, isSizeKnown: Bool = true,
    executor: any WorkExecutor, system: any FileCalls = SystemFileCalls()
  ) {
    self.path = path
    self.layout = layout
    self.seal = seal
    self.isSizeKnown = isSizeKnown
    self.executor = executor
    self.system = system
  }

  /// The format of the open file; `nil` without encryption.
  var format: SealedFile? { seal?.format(label, size: isSizeKnown ? layout.size : .max) }

  /// Opens or creates the file, and reads the remains of an earlier run.
  func open(bootID: String?) throws(DownloadError) -> PartialRemains {
    descriptor = system.open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("open") }
    opened = OpenFile(RandomAccessFile(descriptor: descriptor, path: path, system))
    var status = stat()
    guard system.fstat(descriptor, &status) == 0 else { throw failure("open") }
    let size = try hasLabel() ? Int64(status.st_size) : 0
    let marks = try remainingMarks(size, bootID)
    if layout.hasMarks, marks == nil || size == 0 {
      // The bytes there belong to another run of the system, or to another file.
      guard system.ftruncate(descriptor, min(size, layout.fileSize)) == 0 else {
        throw failure("write")
      }
      try write(layout.header(bootID: bootID ?? ""), 0..<PartialLayout.headerBytes, layout.marksAt)
    }
    if size == 0 { try beginSealing() }
    return PartialRemains(
      contentBytes: layout.contentBytes(inFile: size), marks: marks,
      mayBeFinished: size == layout.fileSize)
  }

  /// Reads the label of a sealed file. Returns `false` if the file must begin again.
  private func hasLabel() throws(DownloadError) -> Bool {
    guard let seal, let opened else { return true }
    do throws(FileStoreError) {
      guard let found = try seal.label(of: opened.file) else { return false }
      label = found
      return true
    } catch {
      throw DownloadError(converting: error)
    }
  }

  private func beginSealing() throws(DownloadError) {
    guard let seal, let opened else { return }
    do throws(FileStoreError) {
      label = ContentSeal.Label()
      try seal.write(label, to: opened.file)
    } catch {
      throw DownloadError(converting: error)
    }
  }

  /// Writes a piece of `bytes` at `offset`, and then marks `count` bytes of `chunk` as here.
  func write(
    _ bytes: [UInt8], _ range: Range<Int>, at offset: Int64, chunk: Int, count: Int64
  ) throws(DownloadError) {
    try writeContent(bytes, range, offset)
    try mark(chunk, count)
  }

  /// Writes the next bytes of content without marks at `offset`.
  func write(_ bytes: [UInt8], at offset: Int64) throws(DownloadError) {
    try writeContent(bytes, bytes.indices, offset)
  }

  /// Marks how many bytes from the start of a chunk are here; with 0 the chunk begins again.
  func mark(_ chunk: Int, _ count: Int64) throws(DownloadError) {
    if seal != nil, count == 0 {
      let (part, start) = (SealedFile.partBytes, Int64(chunk) * layout.chunkSize)
      buffer.remove(start / part..<(start + layout.chunkSize + part - 1) / part)
    }
    guard layout.hasMarks else { return }
    let bytes = PartialLayout.encode(layout.lasting(count, of: chunk))
    try write(bytes, bytes.indices, layout.mark(of: chunk))
  }

  /// Reads a block of the content from the start of a range, at most a megabyte; empty if there is
  /// none.
  func read(_ range: Range<Int64>) throws(DownloadError) -> [UInt8] {
    guard let format, let opened else {
      return try Self.read(descriptor, range, path, system)
    }
    let number = range.lowerBound / SealedFile.partBytes
    var part = buffer[number] ?? []
    if part.isEmpty {
      do throws(FileStoreError) { part = try format.open(number, of: opened.file) } catch {
        // Bytes lost with another run of the system are no part.
        if error.kind == .damaged { return [] }
        throw DownloadError(converting: error)
      }
    }
    let start = Int(range.lowerBound - number * SealedFile.partBytes)
    let end = min(part.count, start + Int(min(SealedFile.partBytes, Int64(range.count))))
    return start < end ? Array(part[start..<end]) : []
  }

  /// Returns the hash of a part of the content; `nil` if the file is too short.
  func digest(of range: Range<Int64>) throws(DownloadError) -> [UInt8]? {
    var hash = SHA256()
    var position = range.lowerBound
    while position < range.upperBound {
      let bytes = try read(position..<range.upperBound)
      if bytes.isEmpty { return nil }
      hash.update(bytes)
      position += Int64(bytes.count)
    }
    return hash.finish()
  }

  /// Copies a chunk from another file if the hash matches. Returns true if it did.
  func copy(
    _ local: LocalChunk, to offset: Int64, expecting hash: ContentHash
  ) throws(DownloadError) -> Bool {
    let source = system.open(local.path, O_RDONLY | O_CLOEXEC, 0)
    guard source >= 0 else { return false }
    defer { system.close(source) }
    let range = local.offset..<local.offset + Int64(local.length)
    let digest: [UInt8]?
    do throws(DownloadError) {
      digest = try Self.digest(source, range, local.path, system) {
        (bytes, at) throws(DownloadError) in
        try writeContent(bytes, bytes.indices, offset + at - local.offset)
      }
    } catch {
      // An unreadable source counts as none.
      if error.kind == .diskFull { throw error }
      return false
    }
    return digest == hash.bytes
  }

  /// Waits until all writes are on the disk.
  func synchronise() throws(DownloadError) {
    guard system.fsync(descriptor) == 0 else { throw failure("write") }
  }

  /// Removes the marks; only the content stays.
  ///
  /// - Parameter size: the bytes of content whose size was unknown.
  func finish(size: Int64? = nil, isDurable: Bool) throws(DownloadError) {
    let whole = size ?? layout.size
    if let seal, size != nil || whole == 0 {
      try sealLast(seal.format(label, size: whole))
    }
    let bytes = seal == nil ? whole : ContentSeal.fileSize(whole)
    guard system.ftruncate(descriptor, bytes) == 0 else { throw failure("write") }
    if isDurable { try synchronise() }
  }

  private func sealLast(_ format: SealedFile) throws(DownloadError) {
    guard let opened else { return }
    let last = buffer.finish()
    do throws(FileStoreError) {
      try format.write(last.bytes, at: last.number * SealedFile.partBytes, to: opened.file)
    } catch {
      throw DownloadError(converting: error)
    }
  }

  private func remainingMarks(
    _ size: Int64, _ bootID: String?
  ) throws(DownloadError) -> [Int: Int64]? {
    guard let bootID, layout.hasMarks, size >= layout.marksAt + Int64(PartialLayout.headerBytes)
    else { return nil }
    let end = min(size, layout.marksEnd)
    var bytes: [UInt8] = []
    var position = layout.marksAt
    while position < end {
      let part = try Self.read(descriptor, position..<end, path, system)
      if part.isEmpty { break }
      bytes += part
      position += Int64(part.count)
    }
    return layout.marks(in: bytes, bootID: bootID)
  }

  private func writeContent(
    _ bytes: [UInt8], _ range: Range<Int>, _ offset: Int64
  ) throws(DownloadError) {
    guard let format, let opened else { return try write(bytes, range, offset) }
    let size = isSizeKnown ? layout.size : nil
    guard let full = buffer.add(bytes[range], at: offset, size: size) else {
      throw DownloadError(.file, "\(path) was not written in order")
    }
    for part in full {
      if Task.isCancelled { throw .cancelled }
      do throws(FileStoreError) {
        try format.write(part.bytes, at: part.number * SealedFile.partBytes, to: opened.file)
      } catch {
        throw DownloadError(converting: error)
      }
    }
  }

  private func write(
    _ bytes: [UInt8], _ range: Range<Int>, _ offset: Int64
  ) throws(DownloadError) {
    var (start, offset) = (range.lowerBound, offset)
    while start < range.upperBound {
      // A slow disk makes writers wait; a pause should not wait with them.
      if Task.isCancelled { throw .cancelled }
      let limit = min(range.upperBound - start, Self.writeBytesMax)
      let count = bytes.withUnsafeBytes {
        system.pwrite(descriptor, $0.baseAddress.map { $0 + start }, limit, offset)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw failure("write") }
      start += count
      offset += Int64(count)
    }
  }

  private func failure(_ doing: String) -> DownloadError { .file(doing, path) }
}

// Reads of any file in blocks.
extension PartialFile {
  static let blockBytes = 1 << 20
  /// The bytes of one write.
  static let writeBytesMax = 128 << 10

  /// Reads at most a block; the result is empty at the end of the file.
  static func read(
    _ descriptor: Int32, _ range: Range<Int64>, _ path: String, _ system: any FileCalls
  ) throws(DownloadError) -> [UInt8] {
    let limit = Int(min(Int64(blockBytes), range.upperBound - range.lowerBound))
    var code: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, filled in
      var count = -1
      repeat {
        count = system.pread(descriptor, buffer.baseAddress, limit, range.lowerBound)
      } while count < 0 && errno == EINTR
      code = count < 0 ? errno : 0
      filled = max(0, count)
    }
    errno = code
    guard code == 0 else { throw .file("read", path) }
    return bytes
  }

  /// Passes each block to `each` before it is hashed; returns `nil` if the file is too short.
  private static func digest(
    _ descriptor: Int32, _ range: Range<Int64>, _ path: String, _ system: any FileCalls,
    _ each: ([UInt8], Int64) throws(DownloadError) -> Void
  ) throws(DownloadError) -> [UInt8]? {
    var hash = SHA256()
    var position = range.lowerBound
    while position < range.upperBound {
      let bytes = try read(descriptor, position..<range.upperBound, path, system)
      if bytes.isEmpty { return nil }
      try each(bytes, position)
      hash.update(bytes)
      position += Int64(bytes.count)
    }
    return hash.finish()
  }
}

extension DownloadError {
  /// Creates an error from the system's last error number for a file.
  static func file(_ doing: String, _ path: String) -> DownloadError {
    let code = errno
    let reason = String(cString: strerror(code))
    return DownloadError(
      code == ENOSPC || code == EDQUOT ? .diskFull : .file, "cannot \(doing) \(path): \(reason)")
  }
}

/// An open file, shared by calls.
final class OpenFile: Sendable {
  let file: RandomAccessFile

  init(_ file: consuming RandomAccessFile) { self.file = file }
}

import FerryCryptography
import FerryProtocol

/// The format of a file encrypted at rest (SPEC.md §21): a head and the content's parts. Each part
/// is sealed by AES-256-GCM with a separate nonce.
///
/// The associated data binds a part to the file and the place, and the last part to the number of
/// parts and the size, which may be unknown before. So parts can neither be exchanged nor omitted,
/// and a file cannot replace another.
package struct SealedFile: Sendable, Equatable {
  /// The bytes of a part except the last, before sealing. Chunks of missions are multiples of it, so
  /// two requests never write to one part.
  package static let partBytes: Int64 = 64 << 10
  /// The bytes added to a part by sealing: the nonce before it and the tag after it.
  package static let overheadBytes = Int64(AESGCM.nonceBytes + AESGCM.tagBytes)
  /// The first bytes of a file.
  package static let head = Array("ferrysealed 0003".utf8)

  package let cipher: AESGCM
  /// 32 bytes as the file's identifier.
  package let identity: [UInt8]
  /// Bytes of the content.
  package let size: Int64
  /// The offset of the first part: after the head, or after a label beside it.
  package let start: Int64

  package init(cipher: AESGCM, identity: [UInt8], size: Int64, start: Int64 = 16) {
    (self.cipher, self.identity, self.size, self.start) = (cipher, identity, size, start)
  }

  /// The number of parts; empty content has one, so it is sealed, too.
  package var partCount: Int64 { Self.partCount(of: size) }

  /// Bytes of the file.
  package var fileSize: Int64 { Self.fileSize(size, start: start) }

  private static func partCount(of size: Int64) -> Int64 {
    max(1, size / partBytes + (size % partBytes > 0 ? 1 : 0))
  }

  /// Returns the bytes of a file with so many bytes of content.
  package static func fileSize(_ size: Int64, start: Int64) -> Int64 {
    start + size + partCount(of: size) * overheadBytes
  }

  // MARK: Writing

  /// Writes the head of a file.
  package func begin(_ file: borrowing RandomAccessFile) throws(FileStoreError) {
    try file.write(Self.head, at: 0)
  }

  /// Encrypts a part and writes it to the right place.
  ///
  /// - Parameter nonce: 12 new random bytes.
  package func write(
    _ content: [UInt8], as part: Int64, isLast: Bool, to file: borrowing RandomAccessFile,
    nonce: [UInt8]
  ) throws(FileStoreError) {
    let sealed = cipher.seal(content, nonce: nonce, context: context(of: part, isLast: isLast))
    try file.write(nonce + sealed, at: offset(of: part))
  }

  /// Encrypts content from the start of a part on, up to the end of a part or of the content.
  package func write(
    _ content: [UInt8], at offset: Int64, to file: borrowing RandomAccessFile
  ) throws(FileStoreError) {
    var (start, part) = (0, offset / Self.partBytes)
    repeat {
      let end = min(content.count, start + Int(Self.partBytes))
      try write(
        Array(content[start..<end]), as: part, isLast: part == partCount - 1, to: file,
        nonce: SecureRandom.bytes(AESGCM.nonceBytes))
      (start, part) = (end, part + 1)
    } while start < content.count
  }

  // MARK: Reading

  /// Decrypts one part of the content.
  ///
  /// - Throws: ``FileStoreError/Kind/damaged`` if it was altered or sealed with another key.
  package func open(
    _ part: Int64, of file: borrowing RandomAccessFile
  ) throws(FileStoreError) -> [UInt8] {
    let count = length(of: part) + Int(Self.overheadBytes)
    let bytes = try file.read(at: offset(of: part), count: count)
    guard bytes.count == count else {
      throw FileStoreError(.damaged, "\(file.path) was shortened")
    }
    do {
      return try cipher.open(
        Array(bytes[AESGCM.nonceBytes...]), nonce: Array(bytes[..<AESGCM.nonceBytes]),
        context: context(of: part, isLast: part == partCount - 1))
    } catch {
      throw FileStoreError(.damaged, "\(file.path) was altered, or encrypted with another key")
    }
  }

  /// Returns the hash of the content; `nil` if the file was altered.
  ///
  /// - Parameter goesOn: receives the number of bytes read so far.
  /// - Throws: ``FileStoreError/Kind/cancelled`` if `goesOn` returns `false`.
  package func hash(
    of file: borrowing RandomAccessFile, while goesOn: (Int64) -> Bool
  ) throws(FileStoreError) -> ContentHash? {
    guard try file.size() == fileSize,
      try file.read(at: 0, count: Self.head.count) == Self.head
    else {
      return nil
    }
    var digest = SHA256()
    for part in 0..<partCount {
      guard goesOn(part * Self.partBytes) else {
        throw FileStoreError(.cancelled, "the check was stopped")
      }
      do {
        digest.update(try open(part, of: file))
      } catch  where error.kind == .damaged {
        return nil
      }
    }
    return ContentHash(digest.finish())
  }

  /// Returns the bytes of a part, before sealing.
  package func length(of part: Int64) -> Int {
    Int(min(Self.partBytes, size - part * Self.partBytes))
  }

  private func offset(of part: Int64) -> Int64 {
    start + part * (Self.partBytes + Self.overheadBytes)
  }

  private func context(of part: Int64, isLast: Bool) -> [UInt8] {
    var bytes = identity
    let totals = isLast ? (count: partCount, size: size) : (count: Int64(0), size: Int64(0))
    for number in [part, totals.count, totals.size] {
      withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
    return bytes
  }
}

/// Reads a sealed file at any offset. It keeps the last decrypted part.
package struct SealedReader: Sendable {
  private let sealed: SealedFile
  private var last: (part: Int64, bytes: [UInt8])?

  package init(_ sealed: SealedFile) { self.sealed = sealed }

  /// Reads `count` bytes within the content.
  package mutating func read(
    _ file: borrowing RandomAccessFile, from offset: Int64, count: Int
  ) throws(FileStoreError) -> [UInt8] {
    let end = offset + Int64(count)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    var at = offset
    while at < end {
      let part = at / SealedFile.partBytes
      if last?.part != part { last = (part, try sealed.open(part, of: file)) }
      let opened = last?.bytes ?? []
      let start = part * SealedFile.partBytes
      let until = min(end, start + Int64(opened.count))
      guard until > at else { break }
      bytes += opened[Int(at - start)..<Int(until - start)]
      at = until
    }
    return bytes
  }
}

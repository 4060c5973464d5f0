import FerryCryptography
import FerryProtocol

/// The format of content that is encrypted at rest (SPEC.md §21): a head and the content's parts.
/// Each part is sealed by AES-256-GCM with its own nonce.
///
/// The associated data binds a part to its content, its place and the number of parts. So parts can
/// neither be exchanged nor omitted.
struct SealedFile: Sendable {
  /// The bytes of a part except the last, before sealing.
  static let partBytes: Int64 = 256 << 10
  /// The bytes that sealing adds to a part: the nonce before it and the tag after it.
  static let overheadBytes = Int64(AESGCM.nonceBytes + AESGCM.tagBytes)
  private static let head: [UInt8] = Array("ferrysealed 0001".utf8)

  let cipher: AESGCM
  let hash: ContentHash
  /// Bytes of the content.
  let size: Int64

  /// The number of parts; empty content has one, so that it is sealed, too.
  var partCount: Int64 { max(1, (size + Self.partBytes - 1) / Self.partBytes) }

  /// Bytes of the file.
  var fileSize: Int64 { Int64(Self.head.count) + size + partCount * Self.overheadBytes }

  /// Encrypts the whole of one file into another.
  ///
  /// - Parameters:
  ///   - partial: the encryption of the first file.
  ///   - nonce: returns 12 new random bytes each time.
  func seal(
    _ plain: borrowing RandomAccessFile, _ partial: PartialCipher?,
    into file: borrowing RandomAccessFile,
    nonce: () -> [UInt8]
  ) throws(MissionError) {
    try file.write(Self.head, at: 0)
    for part in 0..<partCount {
      let place = part * Self.partBytes
      let content = partial.applied(
        to: try plain.read(at: place, count: length(of: part)), at: place)
      guard content.count == length(of: part) else {
        throw MissionError(.damaged, "\(plain.path) was shortened")
      }
      let nonce = nonce()
      let sealed = cipher.seal(content, nonce: nonce, context: context(of: part))
      try file.write(nonce + sealed, at: offset(of: part))
    }
  }

  /// Decrypts one part of the content.
  ///
  /// - Throws: ``MissionError/Kind/damaged`` if it was altered or sealed with another key.
  func open(_ part: Int64, of file: borrowing RandomAccessFile) throws(MissionError) -> [UInt8] {
    let count = length(of: part) + Int(Self.overheadBytes)
    let bytes = try file.read(at: offset(of: part), count: count)
    guard bytes.count == count else {
      throw MissionError(.damaged, "\(file.path) was shortened")
    }
    do {
      return try cipher.open(
        Array(bytes[AESGCM.nonceBytes...]), nonce: Array(bytes[..<AESGCM.nonceBytes]),
        context: context(of: part))
    } catch {
      throw MissionError(.damaged, "\(file.path) was altered, or encrypted with another key")
    }
  }

  /// Whether the whole file is unchanged.
  func isIntact(
    _ file: borrowing RandomAccessFile, while goesOn: (Int64) -> Bool
  ) throws(MissionError) -> Bool {
    guard try file.size() == fileSize, try file.read(at: 0, count: Self.head.count) == Self.head
    else { return false }
    var digest = SHA256()
    for part in 0..<partCount {
      guard goesOn(part * Self.partBytes) else {
        throw MissionError(.cancelled, "the check was stopped")
      }
      do {
        digest.update(try open(part, of: file))
      } catch  where error.kind == .damaged {
        return false
      }
    }
    return ContentHash(digest.finish()) == hash
  }

  private func length(of part: Int64) -> Int {
    Int(min(Self.partBytes, size - part * Self.partBytes))
  }

  private func offset(of part: Int64) -> Int64 {
    Int64(Self.head.count) + part * (Self.partBytes + Self.overheadBytes)
  }

  private func context(of part: Int64) -> [UInt8] {
    var bytes = hash.bytes
    for number in [part, partCount, size] {
      withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
    return bytes
  }
}

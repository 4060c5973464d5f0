import FerryCryptography
import FerryProtocol

/// Encrypts content at rest, from the first fetched byte (AES-256-GCM, SPEC.md §21).
///
/// A file begins with a head and a label. The label has the file's random identifier, and the hash
/// of the content once it is complete. It is encrypted, too. Each part is bound to the identifier.
public struct ContentSeal: Sendable, Equatable {
  let cipher: AESGCM

  /// Creates the encryption; `nil` unless the key has 32 bytes.
  public init?(key: [UInt8]) {
    guard let cipher = try? AESGCM(key: key) else { return nil }
    self.cipher = cipher
  }

  /// The label of a file.
  struct Label: Sendable, Equatable {
    /// 32 random bytes.
    var identity = SecureRandom.bytes(ContentHash.byteCount)
    /// The hash of complete content.
    var hash: ContentHash?
  }

  /// The offset of the first part.
  static let startBytes: Int64 = 128
  private static let context = Array("ferry content label".utf8)
  private static let labelAt = Int64(SealedFile.head.count)
  private static let labelBytes =
    AESGCM.nonceBytes + 2 * ContentHash.byteCount + AESGCM.tagBytes

  /// Returns the bytes of a file with so many bytes of content.
  static func fileSize(_ size: Int64) -> Int64 { SealedFile.fileSize(size, start: startBytes) }

  /// Returns the bytes of content in the whole parts of a file that is being written.
  static func wholeBytes(inFile size: Int64) -> Int64 {
    max(0, size - startBytes) / (SealedFile.partBytes + SealedFile.overheadBytes)
      * SealedFile.partBytes
  }

  /// Returns the bytes of the content of a complete file.
  static func contentBytes(inFile size: Int64) -> Int64 {
    let whole = wholeBytes(inFile: size)
    let rest = size - startBytes - whole / SealedFile.partBytes * SealedFile.overheadBytes - whole
    return whole + max(0, rest - SealedFile.overheadBytes)
  }

  /// Returns the format of a file with this label.
  func format(_ label: Label, size: Int64) -> SealedFile {
    SealedFile(cipher: cipher, identity: label.identity, size: size, start: Self.startBytes)
  }

  /// Writes the head and the label.
  func write(_ label: Label, to file: borrowing RandomAccessFile) throws(FileStoreError) {
    let nonce = SecureRandom.bytes(AESGCM.nonceBytes)
    let hash = label.hash?.bytes ?? [UInt8](repeating: 0, count: ContentHash.byteCount)
    let sealed = cipher.seal(label.identity + hash, nonce: nonce, context: Self.context)
    try file.write(SealedFile.head + nonce + sealed, at: 0)
  }

  /// Returns the label of a file; `nil` if it has none, or another key.
  func label(of file: borrowing RandomAccessFile) throws(FileStoreError) -> Label? {
    let bytes = try file.read(at: 0, count: Int(Self.labelAt) + Self.labelBytes)
    guard bytes.count == Int(Self.labelAt) + Self.labelBytes,
      bytes.starts(with: SealedFile.head)
    else { return nil }
    let sealed = bytes[Int(Self.labelAt)...]
    guard
      let label = try? cipher.open(
        Array(sealed.dropFirst(AESGCM.nonceBytes)), nonce: Array(sealed.prefix(AESGCM.nonceBytes)),
        context: Self.context)
    else { return nil }
    let hash = Array(label.suffix(ContentHash.byteCount))
    return Label(
      identity: Array(label.prefix(ContentHash.byteCount)),
      hash: hash.allSatisfy { $0 == 0 } ? nil : ContentHash(hash))
  }

  /// Returns the label of a file, and writes one to an empty file or to one of another key.
  func begin(_ file: borrowing RandomAccessFile) throws(FileStoreError) -> Label {
    if let label = try label(of: file) { return label }
    let label = Label()
    try write(label, to: file)
    return label
  }
}

/// Pieces of content on their way into sealed parts. It keeps the last part of each chunk in memory
/// until the part is full.
struct SealingBuffer: Sendable {
  /// A full part.
  struct Part: Sendable, Equatable {
    var number: Int64
    var bytes: [UInt8]
  }

  private var open: [Int64: [UInt8]] = [:]

  /// Adds a piece at an offset, within one chunk. Returns the full parts; `nil` if the piece neither
  /// begins a part nor goes on where the last one of its part has ended.
  ///
  /// - Parameter size: the bytes of the content; `nil` if they are unknown. Then the last part stays
  ///   here until ``finish()``.
  mutating func add(_ bytes: ArraySlice<UInt8>, at offset: Int64, size: Int64?) -> [Part]? {
    var (bytes, offset) = (bytes, offset)
    var full: [Part] = []
    while !bytes.isEmpty {
      let number = offset / SealedFile.partBytes
      let start = number * SealedFile.partBytes
      if size == nil, let former = open.removeValue(forKey: number - 1) {
        full.append(Part(number: number - 1, bytes: former))
      }
      var part = open[number] ?? []
      // A chunk that begins again overwrites the bytes of its last attempt.
      part.removeLast(max(0, part.count - Int(offset - start)))
      guard part.count == Int(offset - start) else { return nil }
      let length = Int(min(SealedFile.partBytes, (size ?? .max) - start))
      let piece = bytes.prefix(length - part.count)
      part += piece
      bytes = bytes.dropFirst(piece.count)
      offset += Int64(piece.count)
      open[number] = part
      guard part.count == length, size != nil else { continue }
      open[number] = nil
      full.append(Part(number: number, bytes: part))
    }
    return full
  }

  /// Returns the bytes of a part that is not full; `nil` if there is none.
  subscript(number: Int64) -> [UInt8]? { open[number] }

  /// Removes the open parts from `number` to `end`.
  mutating func remove(_ range: Range<Int64>) {
    for number in Array(open.keys) where range.contains(number) { open[number] = nil }
  }

  /// Removes and returns the last part of content of unknown size.
  mutating func finish() -> Part {
    let last = open.max { $0.key < $1.key }
    open = [:]
    return Part(number: last?.key ?? 0, bytes: last?.value ?? [])
  }
}

/// Which parts of a file that is being fetched are there, and of which version of the file.
///
/// A file with chunks has a bit for each; one of which only the whole is known has the length of
/// the part that is there from its start.
public struct ChunkMap: Sendable, Equatable {
  /// Chunks of the file; 0 where only the whole is known.
  public let chunkCount: Int
  /// What the server called the version that the parts were fetched from: its strong ETag, or a
  /// date of last change where it has none (RFC 9110 §8.8). `nil` before the first answer.
  public var validator: String?
  /// Bytes from the start of the file that are there, where it has no chunks.
  public var prefixBytes: Int64
  /// Bit `i & 7` of byte `i >> 3` is chunk `i`.
  private var bitmap: [UInt8]

  /// Nothing is there.
  public init(chunkCount: Int) {
    precondition(chunkCount >= 0, "a file has 0 chunks or more")
    self.chunkCount = chunkCount
    validator = nil
    prefixBytes = 0
    bitmap = [UInt8](repeating: 0, count: (chunkCount + 7) / 8)
  }

  /// Whether chunk `index` is there.
  public subscript(index: Int) -> Bool {
    get {
      precondition((0..<chunkCount).contains(index), "there is no such chunk")
      return bitmap[index >> 3] & 1 << (index & 7) != 0
    }
    set {
      precondition((0..<chunkCount).contains(index), "there is no such chunk")
      if newValue {
        bitmap[index >> 3] |= 1 << (index & 7)
      } else {
        bitmap[index >> 3] &= ~(1 << (index & 7))
      }
    }
  }

  /// How many chunks are there.
  public var present: Int { bitmap.reduce(0) { $0 + $1.nonzeroBitCount } }

  /// Chunks that are not there, in order.
  public var missing: [Int] { (0..<chunkCount).filter { !self[$0] } }

  /// Forgets all parts, and which version they were of.
  public mutating func clear() { self = ChunkMap(chunkCount: chunkCount) }

  // MARK: Kept

  private static let format: UInt8 = 1

  /// The map as a blob: format, count, prefix (both as 8 bytes, the highest first), length of the
  /// validator (2 bytes), validator, bitmap.
  public func encoded() -> [UInt8] {
    let validator = Array((validator ?? "").utf8.prefix(Int(UInt16.max)))
    var bytes: [UInt8] = [Self.format]
    for number in [UInt64(chunkCount), UInt64(clamping: prefixBytes)] {
      withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
    withUnsafeBytes(of: UInt16(validator.count).bigEndian) { bytes.append(contentsOf: $0) }
    return bytes + validator + bitmap
  }

  /// Reads a blob; `nil` unless it is one of a file with so many chunks.
  public init?(encoded bytes: [UInt8], chunkCount: Int) {
    self.init(chunkCount: chunkCount)
    guard bytes.count >= 19, bytes[0] == Self.format,
      Self.number(bytes[1..<9]) == UInt64(chunkCount),
      let prefix = Int64(exactly: Self.number(bytes[9..<17]))
    else { return nil }
    let end = 19 + Int(Self.number(bytes[17..<19]))
    guard bytes.count == end + bitmap.count else { return nil }
    bitmap = Array(bytes[end...])
    // Bits behind the last chunk would count as chunks.
    if chunkCount & 7 != 0, bitmap[bitmap.count - 1] >> (chunkCount & 7) != 0 { return nil }
    let text = bytes[19..<end]
    validator = text.isEmpty ? nil : String(validating: text, as: UTF8.self)
    prefixBytes = prefix
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

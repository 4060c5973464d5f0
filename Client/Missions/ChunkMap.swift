/// The fetched parts of a file on this device, and their version of the file.
///
/// A file with chunks has a bit for each. A file with only one hash has the length of the fetched
/// part from the start.
public struct ChunkMap: Sendable, Equatable {
  /// The number of chunks; 0 if only the hash of the whole file is known.
  public let chunkCount: Int
  /// The server's validator of the parts' version: a strong ETag, or a date of last change if there
  /// is none (RFC 9110 §8.8). `nil` before the first answer.
  public var validator: String?
  /// The fetched bytes from the start of a file without chunks.
  public var prefixBytes: Int64
  /// The file's size in bytes, as the server has announced it, if it was unknown before.
  public var announcedBytes: Int64?
  /// Bit `i & 7` of byte `i >> 3` is chunk `i`.
  private var bitmap: [UInt8]

  /// Creates an empty map.
  public init(chunkCount: Int) {
    precondition(chunkCount >= 0, "a file has 0 chunks or more")
    self.chunkCount = chunkCount
    validator = nil
    prefixBytes = 0
    announcedBytes = nil
    bitmap = [UInt8](repeating: 0, count: (chunkCount + 7) / 8)
  }

  /// True if chunk `index` is here.
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

  /// The number of fetched chunks.
  public var present: Int { bitmap.reduce(0) { $0 + $1.nonzeroBitCount } }

  /// The missing chunks, in order.
  public var missing: [Int] { (0..<chunkCount).filter { !self[$0] } }

  /// Removes all parts and their version.
  public mutating func clear() { self = ChunkMap(chunkCount: chunkCount) }

  // MARK: Kept

  private static let format: UInt8 = 1
  /// The format with an announced size: 8 bytes at the end.
  private static let announcedFormat: UInt8 = 2

  /// Returns the map as a blob: format, count, prefix (both as 8 bytes, the highest first), length
  /// of the validator (2 bytes), validator, bitmap, and an announced size, if there is one.
  public func encoded() -> [UInt8] {
    let validator = Array((validator ?? "").utf8.prefix(Int(UInt16.max)))
    var bytes: [UInt8] = [announcedBytes == nil ? Self.format : Self.announcedFormat]
    for number in [UInt64(chunkCount), UInt64(clamping: prefixBytes)] {
      withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
    withUnsafeBytes(of: UInt16(validator.count).bigEndian) { bytes.append(contentsOf: $0) }
    guard let announcedBytes else { return bytes + validator + bitmap }
    return bytes + validator + bitmap
      + withUnsafeBytes(of: UInt64(clamping: announcedBytes).bigEndian) { Array($0) }
  }

  /// Reads a blob; `nil` unless it belongs to a file with this number of chunks.
  public init?(encoded bytes: [UInt8], chunkCount: Int) {
    self.init(chunkCount: chunkCount)
    var bytes = bytes
    var announced: Int64?
    if bytes.first == Self.announcedFormat, bytes.count >= 27 {
      announced = Int64(exactly: Self.number(bytes.suffix(8)))
      guard announced != nil else { return nil }
      bytes.removeLast(8)
      bytes[0] = Self.format
    }
    guard bytes.count >= 19, bytes[0] == Self.format,
      Self.number(bytes[1..<9]) == UInt64(chunkCount),
      let prefix = Int64(exactly: Self.number(bytes[9..<17]))
    else { return nil }
    let end = 19 + Int(Self.number(bytes[17..<19]))
    guard bytes.count == end + bitmap.count else { return nil }
    bitmap = Array(bytes[end...])
    // Bits after the last chunk would count as chunks.
    if chunkCount & 7 != 0, bitmap[bitmap.count - 1] >> (chunkCount & 7) != 0 { return nil }
    let text = bytes[19..<end]
    validator = text.isEmpty ? nil : String(validating: text, as: UTF8.self)
    prefixBytes = prefix
    announcedBytes = announced
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

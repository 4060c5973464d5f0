import FerryCryptography
import FerryProtocol

/// The facts about complete content, computed while it was written.
public struct ContentFacts: Sendable, Equatable {
  /// The size in bytes.
  public var size: Int64
  /// The SHA-256 of the whole.
  public var hash: ContentHash
  /// The SHA-256 of each part of ``DownloadJob/partSize`` bytes, the last one shorter; empty if one
  /// part is the whole.
  public var parts: [ContentHash]

  public init(size: Int64, hash: ContentHash, parts: [ContentHash] = []) {
    self.size = size
    self.hash = hash
    self.parts = parts
  }

  /// True if the facts have the hashes of all parts of this size.
  func hasParts(of partSize: Int64) -> Bool {
    let count = size / partSize + (size % partSize > 0 ? 1 : 0)
    return parts.count == (count > 1 ? Int(count) : 0)
  }
}

/// Hashes content from the start while it passes: the whole, and each part.
struct ContentDigest: ~Copyable {
  private let partSize: Int64
  private var whole = SHA256()
  private var part = SHA256()
  private var size: Int64 = 0
  private var parts: [ContentHash] = []

  /// - Parameter partSize: the bytes of each part but the last; `nil` if only the whole is hashed.
  init(partSize: Int64? = nil) { self.partSize = max(1, partSize ?? .max) }

  /// Adds the next piece of the content.
  mutating func update(_ bytes: [UInt8], _ range: Range<Int>) {
    whole.update(bytes, range)
    guard partSize < .max else {
      size += Int64(range.count)
      return
    }
    var start = range.lowerBound
    while start < range.upperBound {
      let rest = partSize - size % partSize
      let end = start + Int(min(Int64(range.upperBound - start), rest))
      part.update(bytes, start..<end)
      size += Int64(end - start)
      start = end
      if size % partSize == 0 { endPart() }
    }
  }

  /// Adds the next piece of the content.
  mutating func update(_ bytes: [UInt8]) { update(bytes, bytes.indices) }

  /// Returns the facts about all added content.
  consuming func finish() -> ContentFacts {
    if partSize < .max, size % partSize > 0 { endPart() }
    let (size, parts) = (size, parts.count > 1 ? parts : [])
    return ContentFacts(size: size, hash: Self.hash(whole.finish()), parts: parts)
  }

  private mutating func endPart() {
    var ended = SHA256()
    swap(&ended, &part)
    parts.append(Self.hash(ended.finish()))
  }

  private static func hash(_ digest: [UInt8]) -> ContentHash {
    guard let hash = ContentHash(digest) else { preconditionFailure("a digest has 32 bytes") }
    return hash
  }
}

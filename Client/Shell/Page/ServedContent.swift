/// Content served by a shell to its page, read in parts.
public struct ServedContent: Sendable {
  /// The size in bytes.
  public let size: Int64
  /// The media type (RFC 9110 §8.3.1).
  public let mediaType: String
  private let reading: @Sendable (Int64, Int) async throws -> [UInt8]

  /// Creates content.
  ///
  /// - Parameter read: returns at most so many bytes from an offset; none only at the end.
  public init(
    size: Int64, mediaType: String,
    read: @escaping @Sendable (_ offset: Int64, _ count: Int) async throws -> [UInt8]
  ) {
    self.size = size
    self.mediaType = mediaType
    reading = read
  }

  /// Creates content from bytes.
  public init(_ bytes: [UInt8], mediaType: String) {
    self.init(size: Int64(bytes.count), mediaType: mediaType) { offset, count in
      let start = min(max(0, Int(offset)), bytes.count)
      return Array(bytes[start..<min(start + max(0, count), bytes.count)])
    }
  }

  /// Reads a part.
  public func read(from offset: Int64, count: Int) async throws -> [UInt8] {
    try await reading(offset, count)
  }

  /// Reads all bytes.
  public func readAll() async throws -> [UInt8] {
    var bytes: [UInt8] = []
    while Int64(bytes.count) < size {
      let part = try await read(from: Int64(bytes.count), count: 1 << 20)
      if part.isEmpty { break }
      bytes += part
    }
    return bytes
  }
}

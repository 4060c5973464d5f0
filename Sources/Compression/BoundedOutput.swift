/// Decoded bytes, collected through one fixed window and never beyond a limit.
struct BoundedOutput {
  /// Bytes decoded at a time.
  static let windowSize = 1 << 16

  private(set) var bytes: [UInt8] = []
  private let limit: Int

  /// `expected` sizes the first reservation; it may be anything, for the limit holds.
  init(limit: Int, expected: Int) {
    self.limit = max(limit, 0)
    bytes.reserveCapacity(min(self.limit, max(expected, 0)))
  }

  /// Appends, or throws `tooLarge` and keeps the present bytes.
  mutating func append(_ piece: UnsafeRawBufferPointer) throws(CompressionError) {
    guard piece.count <= limit - bytes.count else { throw .tooLarge(limit: limit) }
    let needed = bytes.count + piece.count
    if needed > bytes.capacity {
      // Array would double past the limit.
      bytes.reserveCapacity(min(limit, max(needed, bytes.capacity * 2)))
    }
    bytes.append(contentsOf: piece)
  }
}

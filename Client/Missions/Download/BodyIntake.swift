/// Cuts a body at the ends of chunks, and never accepts more than the requested bytes.
struct BodyIntake: Equatable {
  /// A piece of a body's part, within one chunk.
  struct Piece: Equatable {
    /// The piece's bytes in the part.
    var range: Range<Int>
    /// The piece's offset in the file.
    var offset: Int64
    var chunk: Int
    /// True if the piece completes the chunk.
    var endsChunk: Bool
  }

  /// The offset of the next byte.
  private(set) var position: Int64
  private let end: Int64
  private let size: Int64
  private let chunkSize: Int64

  /// Creates the intake of a body with these bytes of a file.
  init(_ bytes: Range<Int64>, size: Int64, chunkSize: Int64) {
    position = bytes.lowerBound
    end = bytes.upperBound
    self.size = size
    self.chunkSize = chunkSize
  }

  /// True if all bytes have arrived.
  var isDone: Bool { position == end }

  /// Returns the pieces of the next `count` bytes; omits bytes after the end.
  mutating func consume(_ count: Int) -> [Piece] {
    var pieces: [Piece] = []
    var start = 0
    while start < count, position < end {
      let chunk = position / chunkSize
      let chunkEnd = min((chunk + 1) * chunkSize, size)
      let length = Int(min(Int64(count - start), min(chunkEnd, end) - position))
      let next = position + Int64(length)
      pieces.append(
        Piece(
          range: start..<start + length, offset: position, chunk: Int(chunk),
          endsChunk: next == chunkEnd))
      start += length
      position = next
    }
    return pieces
  }
}

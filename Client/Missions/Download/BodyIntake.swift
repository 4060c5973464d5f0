/// Cuts a body at the ends of chunks, and never takes more than was asked for.
struct BodyIntake: Equatable {
  /// A piece of a body's part, within one chunk.
  struct Piece: Equatable {
    /// Where it lies in the part.
    var range: Range<Int>
    /// Where it belongs in the file.
    var offset: Int64
    var chunk: Int
    /// Whether the chunk is whole with it.
    var endsChunk: Bool
  }

  /// Where the next byte belongs.
  private(set) var position: Int64
  private let end: Int64
  private let size: Int64
  private let chunkSize: Int64

  /// The intake of a body that is these bytes of a file.
  init(_ bytes: Range<Int64>, size: Int64, chunkSize: Int64) {
    position = bytes.lowerBound
    end = bytes.upperBound
    self.size = size
    self.chunkSize = chunkSize
  }

  /// Whether all bytes have come.
  var isDone: Bool { position == end }

  /// The pieces of the next `count` bytes; what comes after the end is left out.
  mutating func take(_ count: Int) -> [Piece] {
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

import FerryConformance

/// Content decided by a seed.
enum SeededContent {
  /// Returns `count` bytes of a stream.
  static func bytes(_ random: SeededRandom, count: Int) -> [UInt8] {
    var random = random
    return draw(count, from: &random)
  }

  /// Draws `count` bytes.
  static func draw(_ count: Int, from random: inout SeededRandom) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: (count + 7) / 8 * 8)
    bytes.withUnsafeMutableBytes { buffer in
      for place in stride(from: 0, to: buffer.count, by: 8) {
        buffer.storeBytes(of: random.next().littleEndian, toByteOffset: place, as: UInt64.self)
      }
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}

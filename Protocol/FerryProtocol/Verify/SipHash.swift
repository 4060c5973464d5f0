/// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012), under a public key. It is
/// strong and fast against faults, and no defence against an attacker who makes records with a
/// chosen digest.
enum SipHash {
  /// The key's sixteen bytes are the ASCII text `ferry-digest-v01`.
  private static let key: (UInt64, UInt64) = (0x6964_2D79_7272_6566, 0x3130_762D_7473_6567)

  /// Returns the sixteen bytes of output as a number, the first byte the most significant.
  static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt128 { hash(bytes, key: key) }

  /// Returns the same under another key, with the halves read least significant byte first.
  static func hash(_ bytes: UnsafeRawBufferPointer, key: (UInt64, UInt64)) -> UInt128 {
    var state = SipState(key)
    let whole = bytes.count & ~7
    var offset = 0
    while offset < whole {
      state.absorb(
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
      offset += 8
    }
    var last = UInt64(truncatingIfNeeded: bytes.count) << 56
    while offset < bytes.count {
      last |= UInt64(bytes[offset]) << UInt64(8 * (offset & 7))
      offset += 1
    }
    state.absorb(last)
    return state.finish()
  }
}

private struct SipState {
  private var v0: UInt64
  private var v1: UInt64
  private var v2: UInt64
  private var v3: UInt64

  @inline(__always)
  init(_ key: (UInt64, UInt64)) {
    v0 = key.0 ^ 0x736F_6D65_7073_6575
    v1 = key.1 ^ 0x646F_7261_6E64_6F6D ^ 0xEE
    v2 = key.0 ^ 0x6C79_6765_6E65_7261
    v3 = key.1 ^ 0x7465_6462_7974_6573
  }

  @inline(__always)
  mutating func absorb(_ word: UInt64) {
    v3 ^= word
    round()
    round()
    v0 ^= word
  }

  @inline(__always)
  mutating func finish() -> UInt128 {
    v2 ^= 0xEE
    for _ in 0..<4 { round() }
    let first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xDD
    for _ in 0..<4 { round() }
    let second = v0 ^ v1 ^ v2 ^ v3
    return UInt128(first.byteSwapped) << 64 | UInt128(second.byteSwapped)
  }

  @inline(__always)
  private mutating func round() {
    v0 &+= v1
    v1 = v1 << 13 | v1 >> 51
    v1 ^= v0
    v0 = v0 << 32 | v0 >> 32
    v2 &+= v3
    v3 = v3 << 16 | v3 >> 48
    v3 ^= v2
    v0 &+= v3
    v3 = v3 << 21 | v3 >> 43
    v3 ^= v0
    v2 &+= v1
    v1 = v1 << 17 | v1 >> 47
    v1 ^= v2
    v2 = v2 << 32 | v2 >> 32
  }
}

import CFerrySQLite

/// The wal-index of one database file: regions of memory common to all connections, and the eight
/// locks on it (https://sqlite.org/walformat.html#walidxlocks).
///
/// Killed connections keep the memory they had, which no new connection shares.
final class SharedMemory {
  private var regions: [UnsafeMutableRawPointer] = []
  /// For each lock: the number of shared holders, or −1 for one exclusive holder.
  private var locks = [Int](repeating: 0, count: Int(SQLITE_SHM_NLOCK))
  private(set) var connectionCount = 0

  deinit { regions.forEach { $0.deallocate() } }

  func attach() { connectionCount += 1 }

  func detach() { connectionCount -= 1 }

  /// Returns the region with this index; `nil` when there is none and it shall not be made.
  func region(_ index: Int, size: Int, make: Bool) -> UnsafeMutableRawPointer? {
    if index >= regions.count && !make { return nil }
    while regions.count <= index {
      let region = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
      ferry_zero(region, size)
      regions.append(region)
    }
    return regions[index]
  }

  /// Acquires the locks of `range` for a connection with `held`. Returns `false`, and acquires
  /// none, if another connection is in the way.
  func lock(_ range: Range<Int>, isExclusive: Bool, held: inout HeldLocks) -> Bool {
    if isExclusive {
      for index in range where locks[index] != 0 { return false }
      for index in range { locks[index] = -1 }
      held.exclusive |= HeldLocks.bits(range)
    } else if held.shared & HeldLocks.bits(range) == 0 {
      for index in range where locks[index] < 0 { return false }
      for index in range { locks[index] += 1 }
      held.shared |= HeldLocks.bits(range)
    }
    return true
  }

  /// Releases the connection's locks of `range`.
  func unlock(_ range: Range<Int>, held: inout HeldLocks) {
    for index in range {
      let bit = HeldLocks.bits(index..<index + 1)
      if held.exclusive & bit != 0 { locks[index] = 0 }
      if held.shared & bit != 0 { locks[index] -= 1 }
    }
    held.exclusive &= ~HeldLocks.bits(range)
    held.shared &= ~HeldLocks.bits(range)
  }
}

/// The locks of the wal-index held by one connection, a bit each.
struct HeldLocks {
  var shared: UInt16 = 0
  var exclusive: UInt16 = 0

  static func bits(_ range: Range<Int>) -> UInt16 {
    (1 << UInt16(range.upperBound)) - (1 << UInt16(range.lowerBound))
  }
}

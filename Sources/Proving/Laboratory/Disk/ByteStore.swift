import CFerrySQLite

/// The bytes of a file, with room to grow; it has one owner and is never copied by accident.
struct ByteStore: ~Copyable {
  private(set) var count = 0
  private var capacity = 0
  private var start: UnsafeMutableRawPointer?

  deinit { start?.deallocate() }

  /// Copies `count` bytes from `offset` on to `target`.
  func read(_ target: UnsafeMutableRawPointer, count: Int, at offset: Int) {
    precondition(offset >= 0 && count >= 0 && offset + count <= self.count, "beyond the end")
    guard let start, count > 0 else { return }
    target.copyMemory(from: start + offset, byteCount: count)
  }

  /// Writes `count` bytes at `offset`; a gap before them is filled with zeros.
  mutating func write(_ source: UnsafeRawPointer, count: Int, at offset: Int) {
    precondition(offset >= 0 && count >= 0, "before the beginning")
    if offset + count > self.count {
      if offset > self.count { resize(to: offset) }
      reserve(offset + count)
      self.count = offset + count
    }
    guard let start else { return }
    (start + offset).copyMemory(from: source, byteCount: count)
  }

  /// Cuts the end off, or lengthens it with zeros.
  mutating func resize(to newCount: Int) {
    reserve(newCount)
    if newCount > count, let start { ferry_zero(start + count, newCount - count) }
    count = newCount
  }

  /// Removes the first `length` bytes.
  mutating func removeFirst(_ length: Int) {
    if let start, length < count {
      start.copyMemory(from: start + length, byteCount: count - length)
    }
    count -= length
  }

  func copied() -> [UInt8] { copied(from: 0, count: count) }

  /// Returns as many of the `count` bytes from `offset` on as there are.
  func copied(from offset: Int, count: Int) -> [UInt8] {
    let length = max(0, min(count, self.count - offset))
    return [UInt8](unsafeUninitializedCapacity: length) { buffer, initialized in
      if let target = buffer.baseAddress { read(target, count: length, at: offset) }
      initialized = length
    }
  }

  /// Appends `count` bytes of `other` from `offset` on.
  mutating func append(from other: borrowing ByteStore, count: Int, at offset: Int) {
    precondition(offset >= 0 && offset + count <= other.count, "beyond the end")
    guard let source = other.start, count > 0 else { return }
    write(source + offset, count: count, at: self.count)
  }

  private mutating func reserve(_ wanted: Int) {
    guard wanted > capacity else { return }
    let larger = max(wanted, capacity * 2, 512)
    let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
    if let start {
      moved.copyMemory(from: start, byteCount: count)
      start.deallocate()
    }
    start = moved
    capacity = larger
  }
}

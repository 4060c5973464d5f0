import CFerrySQLite

#if canImport(Glibc)
  import Glibc
#endif

/// Memory for SQLite in a process with one user thread at a time.
///
/// Blocks of one size are kept in a separate list and used again. SQLite makes and frees thousands
/// of small objects when it prepares statements and reads schemas. Distributions build SQLite
/// without its own lists for them (SQLITE_OMIT_LOOKASIDE).
enum PooledMemory {
  /// Sizes are rounded up to this many bytes.
  static let unit = 16
  /// Larger blocks are the operating system's.
  static let sizeMax = 8_192
  /// Taken from the operating system at once: a huge page.
  static let chunkSize = 1 << 21
  /// In front of each block: the size.
  static let headerSize = 16

  /// Returns SQLite's table of functions (https://sqlite.org/c3ref/mem_methods.html).
  static func methods() -> sqlite3_mem_methods {
    sqlite3_mem_methods(
      xMalloc: { PooledMemory.allocate(Int($0)) },
      xFree: { if let block = $0 { PooledMemory.free(block) } },
      xRealloc: { block, size in
        guard let block else { return PooledMemory.allocate(Int(size)) }
        return PooledMemory.resize(block, to: Int(size))
      },
      xSize: { block in block.map { Int32(PooledMemory.size(of: $0)) } ?? 0 },
      xRoundup: { Int32(PooledMemory.rounded(Int($0))) },
      xInit: { _ in
        PooledMemory.prepare()
        return SQLITE_OK
      }, xShutdown: { _ in }, pAppData: nil)
  }

  private static func rounded(_ size: Int) -> Int { (max(size, 1) + unit - 1) & ~(unit - 1) }

  private static func size(of block: UnsafeMutableRawPointer) -> Int {
    (block - headerSize).load(as: Int.self)
  }

  /// SQLite calls it before it asks for memory.
  private static func prepare() {
    guard lists == nil else { return }
    let count = sizeMax / unit + 1
    let lists = UnsafeMutablePointer<UnsafeMutableRawPointer?>.allocate(capacity: count)
    lists.initialize(repeating: nil, count: count)
    self.lists = lists
  }

  private static func allocate(_ wanted: Int) -> UnsafeMutableRawPointer? {
    let size = rounded(wanted)
    guard size <= sizeMax, let lists else {
      return begin(.allocate(byteCount: size + headerSize), size)
    }
    if let block = lists[size / unit] {
      let next = block.load(as: UnsafeMutableRawPointer?.self)
      // A block freed long ago is in no cache. The next call would wait for it.
      ferry_prefetch(next)
      lists[size / unit] = next
      return block
    }
    if room < size + headerSize {
      next = chunk()
      room = chunkSize
    }
    guard let start = next else { return nil }
    next = start + size + headerSize
    room -= size + headerSize
    return begin(start, size)
  }

  /// Returns the memory of one huge page, if the operating system has them: SQLite's objects are
  /// far apart.
  private static func chunk() -> UnsafeMutableRawPointer {
    let chunk = UnsafeMutableRawPointer.allocate(byteCount: chunkSize, alignment: chunkSize)
    #if os(Linux)
      madvise(chunk, chunkSize, MADV_HUGEPAGE)
    #endif
    return chunk
  }

  private static func begin(
    _ start: UnsafeMutableRawPointer, _ size: Int
  ) -> UnsafeMutableRawPointer {
    start.storeBytes(of: size, as: Int.self)
    return start + headerSize
  }

  private static func free(_ block: UnsafeMutableRawPointer) {
    let size = size(of: block)
    guard size <= sizeMax, let lists else { return (block - headerSize).deallocate() }
    block.storeBytes(of: lists[size / unit], as: UnsafeMutableRawPointer?.self)
    lists[size / unit] = block
  }

  private static func resize(
    _ block: UnsafeMutableRawPointer, to wanted: Int
  ) -> UnsafeMutableRawPointer? {
    let size = size(of: block)
    if rounded(wanted) == size { return block }
    guard let moved = allocate(wanted) else { return nil }
    moved.copyMemory(from: block, byteCount: min(size, wanted))
    free(block)
    return moved
  }

  // SAFETY: SQLite's functions take no context; the caller that installs them guarantees that one
  // thread at a time uses SQLite. They have constant first values, so no access checks whether they
  // have been set.

  /// By size: a list of free blocks, each of which begins with the address of the next.
  nonisolated(unsafe) private static var lists: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  /// The rest of the newest chunk.
  nonisolated(unsafe) private static var next: UnsafeMutableRawPointer?
  nonisolated(unsafe) private static var room = 0
}

extension UnsafeMutableRawPointer {
  fileprivate static func allocate(byteCount: Int) -> UnsafeMutableRawPointer {
    allocate(byteCount: byteCount, alignment: PooledMemory.unit)
  }
}

/// One file: bytes, non-durable changes, and the locks of the handles on it. It remains after the
/// name is gone, until the last handle closes.
final class StoredFile {
  /// The full path; empty for a temporary file.
  let path: String
  /// True while the path still leads to it.
  var isLinked = true
  private(set) var bytes = ByteStore()
  var locks = FileLocks()
  /// Of the connections in write-ahead mode; gone with the last of them.
  var sharedMemory: SharedMemory?
  /// True if a loss of power may remove the name.
  var isNameNew: Bool
  private var unsynced = UnsyncedChanges()

  var isTemporary: Bool { path.isEmpty }

  /// Creates a new, empty file.
  init(path: String) {
    self.path = path
    isNameNew = !path.isEmpty
  }

  /// Creates a durable copy.
  init(path: String, copyOf original: StoredFile) {
    self.path = path
    isNameNew = false
    bytes.append(from: original.bytes, count: original.bytes.count, at: 0)
  }

  /// Copies `count` bytes to `target`, zeros beyond the end; returns how many there were.
  func read(_ target: UnsafeMutableRawPointer, count: Int, at offset: Int) -> Int {
    let length = max(0, min(count, bytes.count - offset))
    if length > 0 { bytes.read(target, count: length, at: offset) }
    return length
  }

  func write(_ source: UnsafeRawPointer, count: Int, at offset: Int) {
    guard count > 0 else { return }
    if !isTemporary { unsynced.recordWrite(to: bytes, length: count, at: offset) }
    bytes.write(source, count: count, at: offset)
  }

  func resize(to size: Int) {
    guard size != bytes.count else { return }
    if !isTemporary { unsynced.recordResize(of: bytes, to: size) }
    bytes.resize(to: size)
  }

  /// Makes the content durable.
  func sync() { unsynced.clear() }

  /// Loses part of the non-durable changes; the rest is durable then.
  func losePower(random: () -> UInt64) {
    unsynced.losePower(&bytes, random: random)
    isNameNew = false
  }
}

/// The changes of a file since the last sync, with the former bytes. They are enough to go back to
/// the durable content, and to apply other changes to it.
struct UnsyncedChanges: ~Copyable {
  private struct Change {
    let offset: Int
    /// Bytes written; `nil` for a change of the size to `offset`.
    let length: Int?
    let sizeBefore: Int
    /// The number of replaced bytes, from `offset` on.
    let replaced: Int
  }

  private static let countLimit = 1 << 16

  private var changes: [Change] = []
  private var replacedBytes = ByteStore()
  private var writtenCount = 0

  var isEmpty: Bool { changes.isEmpty }

  /// Records a write right before it is done.
  mutating func recordWrite(to bytes: borrowing ByteStore, length: Int, at offset: Int) {
    let replaced = max(0, min(bytes.count, offset + length) - offset)
    record(
      Change(offset: offset, length: length, sizeBefore: bytes.count, replaced: replaced), in: bytes
    )
    writtenCount += length
  }

  /// Records a change of size right before it is done.
  mutating func recordResize(of bytes: borrowing ByteStore, to size: Int) {
    let replaced = max(0, bytes.count - size)
    record(
      Change(offset: size, length: nil, sizeBefore: bytes.count, replaced: replaced), in: bytes)
  }

  /// Forgets all changes: everything is durable.
  mutating func clear() {
    changes.removeAll(keepingCapacity: true)
    replacedBytes.resize(to: 0)
    writtenCount = 0
  }

  /// Undoes the changes of `bytes`, and applies the surviving ones again.
  mutating func losePower(_ bytes: inout ByteStore, random: () -> UInt64) {
    guard !changes.isEmpty else { return }
    let written = undo(&bytes)
    var fates = PowerLoss(changeCount: changes.count, random: random)
    for (index, change) in changes.enumerated() {
      let fate = fates.next(index, random: random)
      if change.length == nil {
        if fate == .kept { bytes.resize(to: change.offset) }
      } else {
        fate.write(written[index], at: change.offset, to: &bytes, random: random)
      }
    }
    clear()
  }

  private mutating func record(_ change: Change, in bytes: borrowing ByteStore) {
    if writtenCount + replacedBytes.count > SimulatedDisk.unsyncedLimit
      || changes.count >= Self.countLimit
    {
      writeBackOlderHalf()
    }
    if change.replaced > 0 {
      replacedBytes.append(from: bytes, count: change.replaced, at: change.offset)
    }
    changes.append(change)
  }

  private mutating func writeBackOlderHalf() {
    let older = changes.prefix((changes.count + 1) / 2)
    replacedBytes.removeFirst(older.reduce(0) { $0 + $1.replaced })
    writtenCount -= older.reduce(0) { $0 + ($1.length ?? 0) }
    changes.removeFirst(older.count)
  }

  /// Goes back to the durable content, newest change first; returns the bytes written by each.
  private mutating func undo(_ bytes: inout ByteStore) -> [[UInt8]] {
    var written = [[UInt8]](repeating: [], count: changes.count)
    for index in changes.indices.reversed() {
      let change = changes[index]
      if let length = change.length {
        written[index] = bytes.copied(from: change.offset, count: length)
      }
      bytes.resize(to: change.sizeBefore)
      let start = replacedBytes.count - change.replaced
      let before = replacedBytes.copied(from: start, count: change.replaced)
      before.withUnsafeBytes { source in
        guard let source = source.baseAddress else { return }
        bytes.write(source, count: change.replaced, at: change.offset)
      }
      replacedBytes.resize(to: start)
    }
    return written
  }
}

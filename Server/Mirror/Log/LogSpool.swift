import FerryPostgres
import Foundation

/// The messages of one open transaction, in a file without a name: it is gone with the process. All
/// calls block.
final class LogSpool {
  private let descriptor: Int32
  private let folder: String
  /// The end of the file.
  private var end: UInt64 = 0
  /// Messages that are not in the file yet.
  private var pending: [UInt8] = []
  /// The places of every ``step``-th message, so a cut reads little.
  private var places: [UInt64] = []
  private(set) var count = 0

  /// Bytes of messages in memory.
  private static let pendingMax = 256 << 10
  /// Messages between two known places.
  private static let step = 256
  /// Bytes read at a time.
  private static let chunk = 1 << 20
  /// Bytes of the length before a message.
  private static let head = 4

  /// - Parameter folder: the folder of the mirror; it needs room for large open transactions.
  init(in folder: String) throws {
    self.folder = folder
    let path = "\(folder)/log.\(UUID().uuidString)"
    descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw fault(errno) }
    unlink(path)
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  private func fault(_ code: Int32) -> MirrorFault {
    MirrorFault(
      description: "a large transaction cannot be stored in \(folder): "
        + "\(String(cString: strerror(code))); make room in it")
  }

  func append(_ message: [UInt8]) throws {
    if count.isMultiple(of: Self.step) { places.append(end + UInt64(pending.count)) }
    withUnsafeBytes(of: UInt32(message.count).littleEndian) { pending += $0 }
    pending += message
    count += 1
    if pending.count >= Self.pendingMax { try flush() }
  }

  private func flush() throws {
    var written = 0
    while written < pending.count {
      let count = pending.withUnsafeBytes { bytes in
        pwrite(
          descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written,
          off_t(end) + off_t(written))
      }
      guard count >= 0 || errno == EINTR else { throw fault(errno) }
      written += max(count, 0)
    }
    end += UInt64(written)
    pending = []
  }

  /// Removes all messages but the first ones.
  func cut(to length: Int) throws {
    guard length < count else { return }
    try flush()
    var place = places[length / Self.step]
    for _ in 0..<(length % Self.step) {
      place += UInt64(Self.head + Self.length(try read(Self.head, at: place)[...]))
    }
    guard ftruncate(descriptor, off_t(place)) == 0 else { throw fault(errno) }
    (end, count) = (place, length)
    places.removeLast(places.count - (length + Self.step - 1) / Self.step)
  }

  /// Reads at least one byte, and at most `most`.
  private func read(_ most: Int, at place: UInt64) throws -> [UInt8] {
    var code: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
      var found: Int
      repeat {
        found = pread(descriptor, buffer.baseAddress, most, off_t(place))
        code = found < 0 ? errno : 0
      } while code == EINTR
      count = max(found, 0)
    }
    // Another program may have cut the file.
    guard code == 0, !bytes.isEmpty else { throw fault(code == 0 ? EIO : code) }
    return bytes
  }

  private static func length(_ head: ArraySlice<UInt8>) -> Int {
    Int(head.reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
  }

  /// Calls `body` for each message in order.
  func forEach(_ body: (ArraySlice<UInt8>) throws -> Void) throws {
    try flush()
    var (bytes, place): (ArraySlice<UInt8>, UInt64) = ([], 0)
    for _ in 0..<count {
      try fill(&bytes, Self.head, from: &place)
      let length = Self.length(bytes.prefix(Self.head))
      bytes = bytes.dropFirst(Self.head)
      try fill(&bytes, length, from: &place)
      try body(bytes.prefix(length))
      bytes = bytes.dropFirst(length)
    }
  }

  private func fill(
    _ bytes: inout ArraySlice<UInt8>, _ length: Int, from place: inout UInt64
  ) throws {
    if bytes.count >= length { return }
    var all = Array(bytes)
    while all.count < length {
      let more = try read(max(Self.chunk, length - all.count), at: place)
      place += UInt64(more.count)
      all += more
    }
    bytes = all[...]
  }
}

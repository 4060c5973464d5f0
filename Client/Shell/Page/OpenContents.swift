import Synchronization

/// Files of one page, kept open between two reads. A page may have thousands of addresses, and a
/// process only about a thousand open files.
final class OpenContents: Sendable {
  /// The most open files. Browsers read six at once from one server.
  static let openMax = 8

  typealias Read = @Sendable (_ offset: Int64, _ count: Int) async throws -> [UInt8]

  /// The file of the last read is the last one.
  private let files = Mutex<[(key: [UInt8], read: Read)]>([])

  /// Reads a part of the file with a key.
  ///
  /// - Parameter open: opens the file, if it is not open.
  func read(
    _ key: [UInt8], from offset: Int64, count: Int, opening open: @Sendable () async throws -> Read
  ) async throws -> [UInt8] {
    let read: Read
    if let kept = remove(key) { read = kept } else { read = try await open() }
    // An unreadable file is opened again the next time: it may be repaired by then.
    let bytes = try await read(offset, count)
    add(key, read)
    return bytes
  }

  private func remove(_ key: [UInt8]) -> Read? {
    files.withLock { files in
      guard let place = files.firstIndex(where: { $0.key == key }) else { return nil }
      return files.remove(at: place).read
    }
  }

  private func add(_ key: [UInt8], _ read: @escaping Read) {
    files.withLock { files in
      files.removeAll { $0.key == key }
      files.append((key, read))
      if files.count > Self.openMax { files.removeFirst() }
    }
  }
}

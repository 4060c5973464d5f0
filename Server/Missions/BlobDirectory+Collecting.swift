import FerryProtocol
import Foundation

/// A lock against the collection of a directory's content, until it is released. A publisher holds
/// it from the check for existing content until the store has recorded the content as needed.
package final class BlobHold: Sendable {
  private let descriptor: Int32

  /// - Parameter isExclusive: Whether no other process may hold one, as the collector requires.
  init(_ path: String, isExclusive: Bool) throws(BlobError) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else { throw BlobError(path, code: errno) }
    while flock(descriptor, isExclusive ? LOCK_EX : LOCK_SH) != 0 {
      let code = errno
      if code == EINTR { continue }
      close(descriptor)
      throw BlobError(path, code: code)
    }
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }
}

extension BlobDirectory {
  private var lockFile: String { path + "/lock" }

  /// Waits while content is collected, and then keeps it from being collected.
  package func acquire() throws(BlobError) -> BlobHold {
    try BlobHold(lockFile, isExclusive: false)
  }

  /// Waits for publishers, and then keeps them waiting: release it soon.
  package func acquireForCollecting() throws(BlobError) -> BlobHold {
    try BlobHold(lockFile, isExclusive: true)
  }

  /// Returns the content from `moment` or before (seconds since 1970), in order. It returns some of
  /// a folder at a time: `shard` is the first two hexadecimal digits, 0…255.
  package func content(inShard shard: UInt8, before moment: Int64) throws(BlobError)
    -> [ContentHash]
  {
    let digits = String(shard, radix: 16)
    let outer = "\(path)/\(digits.count == 1 ? "0" : "")\(digits)"
    var found: [ContentHash] = []
    for folder in try Self.names(in: outer) {
      for name in try Self.names(in: "\(outer)/\(folder)") {
        guard let hash = ContentHash(name), try isOlder(file(of: hash), moment) else { continue }
        found.append(hash)
      }
    }
    return found.sorted()
  }

  /// Removes content, and returns the size in bytes; `nil` if it is not here.
  package func remove(_ hash: ContentHash) throws(BlobError) -> Int64? {
    let path = file(of: hash)
    guard let size = try Self.size(ofFile: path) else { return nil }
    guard unlink(path) == 0 || errno == ENOENT else { throw BlobError(path, code: errno) }
    return size
  }

  /// Removes unfinished drafts and uploads from `moment` or before (seconds since 1970), unless
  /// they are being written now. The caller holds the directory as the collector. Other files, and
  /// those with a failed removal, are reported and do not stop the removal.
  package func removeUnfinished(before moment: Int64) throws(BlobError) -> UnfinishedRemoval {
    var removal = UnfinishedRemoval()
    for name in try Self.names(in: incoming) {
      do {
        if try removeUnfinished(name, before: moment) { removal.count += 1 }
      } catch .system(_, ENOENT) {
        // It was finished, or given up, just now.
      } catch {
        removal.failures.append(error)
      }
    }
    return removal
  }

  private func removeUnfinished(_ name: String, before moment: Int64) throws(BlobError) -> Bool {
    let path = "\(incoming)/\(name)"
    guard try isOlder(path, moment) else { return false }
    let file = try BlobFile(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK)
    guard try file.status().st_mode & S_IFMT == S_IFREG else { throw .notAFile(path: path) }
    guard try file.tryLock() else { return false }
    guard unlink(path) == 0 else { throw BlobError(path, code: errno) }
    return true
  }

  private func isOlder(_ path: String, _ moment: Int64) throws(BlobError) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else {
      if errno == ENOENT { return false }
      throw BlobError(path, code: errno)
    }
    return Int64(status.st_mtim.tv_sec) <= moment
  }

  /// Returns the names in a folder, sorted; none if it is absent.
  static func names(in folder: String) throws(BlobError) -> [String] {
    guard let stream = opendir(folder) else {
      if errno == ENOENT || errno == ENOTDIR { return [] }
      throw BlobError(folder, code: errno)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { name in
        name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names.sorted()
  }
}

/// The result of removing unfinished drafts and uploads.
package struct UnfinishedRemoval: Sendable, Equatable {
  /// The number of removed files.
  package var count = 0
  /// The reasons why others could not be removed.
  package var failures: [BlobError] = []

  package init() {}
}

import FerryCryptography
import FerryProtocol
import Foundation

/// An open file, read and written at offsets.
package struct RandomAccessFile: ~Copyable {
  package let descriptor: Int32
  /// The path, for messages.
  package let path: String

  /// The bytes of one read or write.
  package static let blockBytes = 1 << 20

  private let system: any FileCalls

  package init(descriptor: Int32, path: String, _ system: any FileCalls) {
    self.descriptor = descriptor
    self.path = path
    self.system = system
  }

  deinit { system.close(descriptor) }

  /// Returns the size in bytes.
  package func size() throws(FileStoreError) -> Int64 {
    var facts = stat()
    guard system.fstat(descriptor, &facts) == 0 else {
      throw FileStoreError(errno: errno, "\(path) cannot be inspected")
    }
    guard facts.st_mode & S_IFMT == S_IFREG else {
      throw FileStoreError(.files, "\(path) is not a regular file")
    }
    return Int64(facts.st_size)
  }

  /// Reads bytes from an offset, fewer at the end of the file.
  package func read(at offset: Int64, count: Int) throws(FileStoreError) -> [UInt8] {
    var code: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      while filled < count, let start = buffer.baseAddress {
        let read = system.pread(
          descriptor, start + filled, count - filled, offset + Int64(filled))
        if read < 0 && errno == EINTR { continue }
        if read < 0 { code = errno }
        if read <= 0 { break }
        filled += read
      }
    }
    guard code == 0 else { throw FileStoreError(errno: code, "\(path) cannot be read") }
    return bytes
  }

  /// Writes all of these bytes at an offset.
  package func write(_ bytes: [UInt8], at offset: Int64) throws(FileStoreError) {
    var code: Int32 = 0
    bytes.withUnsafeBytes { buffer in
      var done = 0
      while done < buffer.count, let start = buffer.baseAddress {
        let count = buffer.count - done
        let written = system.pwrite(descriptor, start + done, count, offset + Int64(done))
        if written < 0 && errno == EINTR { continue }
        if written < 0 {
          code = errno
          break
        }
        done += written
      }
    }
    guard code == 0 else { throw FileStoreError(errno: code, "\(path) cannot be written") }
  }

  /// Writes the content to the disk.
  package func sync() throws(FileStoreError) {
    guard system.fsync(descriptor) == 0 else {
      throw FileStoreError(errno: errno, "\(path) cannot be written to the disk")
    }
  }

  /// Locks the file for this process, without waiting. Returns true if it succeeded.
  package func lock() -> Bool { system.lock(descriptor) == 0 }

  /// Returns true if the name in the folder still belongs to this file.
  package func isNamed(_ name: String, in folder: borrowing Directory) -> Bool {
    var facts = stat()
    guard system.fstat(descriptor, &facts) == 0, let entry = try? folder.entry(name) else {
      return false
    }
    return entry.inode == UInt64(facts.st_ino)
  }

  /// Makes the file read-only.
  package func protect() throws(FileStoreError) {
    guard system.fchmod(descriptor, 0o400) == 0 else {
      throw FileStoreError(errno: errno, "\(path) cannot be made read-only")
    }
  }

  /// Returns the SHA-256 of the whole content.
  ///
  /// - Parameter goesOn: receives the number of bytes read so far.
  /// - Throws: ``FileStoreError/Kind/cancelled`` if `goesOn` returns `false`.
  package func hash(while goesOn: (Int64) -> Bool = { _ in true }) throws(FileStoreError)
    -> ContentHash?
  {
    var hash = SHA256()
    var offset: Int64 = 0
    while true {
      guard goesOn(offset) else { throw FileStoreError(.cancelled, "the check was stopped") }
      let block = try read(at: offset, count: Self.blockBytes)
      if block.isEmpty { break }
      hash.update(block)
      offset += Int64(block.count)
    }
    return ContentHash(hash.finish())
  }
}

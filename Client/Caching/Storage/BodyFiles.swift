import FerryCryptography
import FerryPlatform
import Foundation

/// Large bodies in a folder, each in a file with the SHA-256 as the name: `ab/<hash>`.
///
/// A rename creates each file as a whole. It is not forced to the disk, since the checksum detects
/// a loss of power on reading. The functions block.
struct BodyFiles {
  /// The age after which an unfinished, untouched file counts as abandoned.
  static let unfinishedAgeMax: Int64 = 3600 * 1000

  private let folder: String

  /// Creates an interface to the files in `folder`; the folder is created when needed.
  init(folder: String) { self.folder = folder }

  /// Writes a body to a temporary file. Returns the path for ``finish(_:hash:)``.
  func prepare(_ body: [UInt8]) throws(FileFailure) -> String {
    try Self.makeFolder(folder)
    var path = Array((folder + "/new-XXXXXX").utf8CString)
    let descriptor = mkstemp(&path)
    guard descriptor >= 0 else { throw FileFailure(folder) }
    let name = path.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    defer { close(descriptor) }
    do throws(FileFailure) {
      try Self.fill(descriptor, with: body, name)
    } catch {
      unlink(name)
      throw error
    }
    return name
  }

  /// Moves a prepared file to the final path; replaces one with the same content.
  func finish(_ prepared: String, hash: [UInt8]) throws(FileFailure) {
    let path = path(hash)
    guard rename(prepared, path) != 0 else { return }
    try Self.makeFolder(folder + "/" + Hexadecimal.text(hash.prefix(1)))
    guard rename(prepared, path) == 0 else { throw FileFailure(path) }
  }

  /// Removes a prepared file.
  func discard(_ prepared: String) { unlink(prepared) }

  /// Returns the bytes of a file, if they match the name.
  func body(hash: [UInt8], length: Int) -> [UInt8]? {
    guard let body = Self.contents(path(hash), limit: length), body.count == length,
      SHA256.digest(of: body) == hash
    else { return nil }
    return body
  }

  /// Removes a file.
  func remove(hash: [UInt8]) { unlink(path(hash)) }

  /// Removes files that no answer refers to, and abandoned unfinished ones.
  ///
  /// - Parameters:
  ///   - now: milliseconds since 1970.
  ///   - isNeeded: returns true if an answer refers to the file with this hash.
  func sweep(now: Int64, isNeeded: ([UInt8]) throws -> Bool) rethrows {
    for name in Self.names(in: folder) {
      let path = folder + "/" + name
      guard name.begins(with: "new-") else {
        for file in Self.names(in: path) {
          if let hash = Self.hash(file), try isNeeded(hash) { continue }
          unlink(path + "/" + file)
        }
        continue
      }
      if let changed = Self.changed(path), changed + Self.unfinishedAgeMax < now { unlink(path) }
    }
  }

  /// Removes all files.
  func removeAll() {
    for name in Self.names(in: folder) {
      let path = folder + "/" + name
      for file in Self.names(in: path) { unlink(path + "/" + file) }
      if name.begins(with: "new-") { unlink(path) }
    }
  }

  /// Creates a folder for this user alone, with all parents.
  static func makeFolder(_ path: String) throws(FileFailure) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    guard errno == ENOENT, let slash = path.last("/"), slash > path.startIndex else {
      throw FileFailure(path)
    }
    try makeFolder(String(path[..<slash]))
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw FileFailure(path) }
  }

  /// Returns all bytes of a file; `nil` if it cannot be read or has more than `limit`.
  static func contents(_ path: String, limit: Int) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      status.st_size <= limit
    else { return nil }
    var isWhole = false
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, count in
      let size = buffer.count
      while count < size {
        let got = read(descriptor, buffer.baseAddress.map { $0 + count }, size - count)
        if got < 0 && errno == EINTR { continue }
        guard got > 0 else { break }
        count += got
      }
      isWhole = count == size
    }
    return isWhole ? bytes : nil
  }

  private func path(_ hash: [UInt8]) -> String {
    folder + "/" + Hexadecimal.text(hash.prefix(1)) + "/" + Hexadecimal.text(hash)
  }

  private static func fill(
    _ descriptor: Int32, with body: [UInt8], _ name: String
  ) throws(FileFailure) {
    var offset = 0
    while offset < body.count {
      let count = body.withUnsafeBytes {
        write(descriptor, $0.baseAddress.map { $0 + offset }, body.count - offset)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw FileFailure(name) }
      offset += count
    }
  }

  /// Returns when a file was last written to, in milliseconds since 1970.
  private static func changed(_ path: String) -> Int64? {
    var status = stat()
    return stat(path, &status) == 0 ? Platform.lastWrite(status) * 1000 : nil
  }

  private static func names(in folder: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
  }

  private static func hash(_ name: String) -> [UInt8]? {
    let digits = Array(name.utf8)
    guard digits.count == 64 else { return nil }
    var hash: [UInt8] = []
    for index in stride(from: 0, to: 64, by: 2) {
      let pair = String(decoding: digits[index...index + 1], as: UTF8.self)
      guard let byte = UInt8(pair, radix: 16) else { return nil }
      hash.append(byte)
    }
    return hash
  }
}

/// A failure of the file system.
struct FileFailure: Error, CustomStringConvertible {
  let description: String

  /// Creates the failure of the last call.
  init(_ path: String) { description = "\(path): \(String(cString: strerror(errno)))" }
}

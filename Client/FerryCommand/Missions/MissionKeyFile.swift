import Ferry
import FerryCommandLine
import Foundation

/// The file that `--key-file` names.
enum MissionKeyFile {
  /// The most bytes of the file: a key in hexadecimal digits, with blanks around it.
  static let bytesMax = 1 << 10

  /// Returns the key; `nil` if no file is named. Warns on standard error if all users may read the
  /// file.
  static func key(_ arguments: ParsedArguments) throws -> [UInt8]? {
    guard let path = arguments.stringIfPresent("key-file") else { return nil }
    let (content, isOpen) = try read(path)
    guard let key = key(in: content) else { throw failure(path, content) }
    if isOpen {
      try TextOutput.standardError.line(
        "ferry: all users of this machine may read the key in \(path): run `chmod 600 \(path)`"
          .escapedForTerminal)
    }
    return key
  }

  /// Reads the file's bytes, at most one above the limit, and whether all users may read it.
  private static func read(_ path: String) throws -> (content: [UInt8], isOpen: Bool) {
    // A pipe without a writer would block for ever.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw unreadable(path, String(cString: strerror(errno))) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      throw unreadable(path, String(cString: strerror(errno)))
    }
    let type = status.st_mode & S_IFMT
    if type == S_IFDIR { throw unreadable(path, "it is a folder") }
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
    var content: [UInt8] = []
    while content.count <= bytesMax {
      var part = [UInt8](repeating: 0, count: bytesMax + 1 - content.count)
      let count = Foundation.read(descriptor, &part, part.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw unreadable(path, String(cString: strerror(errno))) }
      if count == 0 { break }
      content += part.prefix(count)
    }
    return (content, type == S_IFREG && status.st_mode & 0o004 != 0)
  }

  /// Returns the key in a file's bytes: 32 bytes that are not all digits, or 64 hexadecimal digits.
  static func key(in content: [UInt8]) -> [UInt8]? {
    if content.count == ContentHash.byteCount, !isDigits(content) { return content }
    guard content.count <= bytesMax else { return nil }
    let text = String(decoding: content, as: UTF8.self).trimmingCharacters(
      in: .whitespacesAndNewlines)
    return ContentHash(text.lowercased())?.bytes
  }

  private static func isDigits(_ bytes: [UInt8]) -> Bool {
    bytes.allSatisfy { 0x30...0x39 ~= $0 || 0x41...0x46 ~= $0 || 0x61...0x66 ~= $0 }
  }

  private static func failure(_ path: String, _ content: [UInt8]) -> CommandFailure {
    let why =
      if content.count > bytesMax {
        "it has more than \(bytesMax) bytes, and a key has 32, or 64 hexadecimal digits"
      } else if content.count == ContentHash.byteCount {
        "32 hexadecimal digits are half a key: it has 32 bytes, or 64 hexadecimal digits"
      } else {
        "a key has 32 bytes, or 64 hexadecimal digits"
      }
    return CommandFailure(
      "\(path) contains no key", why: why,
      next:
        "name the key's file; `openssl rand -hex 32` creates a new key, which cannot decrypt "
        + "content of another key", code: "no_key")
  }

  private static func unreadable(_ path: String, _ why: String) -> CommandFailure {
    CommandFailure(
      "\(path) cannot be read", why: why, next: "name the key's file", code: "cannot_read")
  }
}

import Ferry
import FerryCommandLine
import FerryPlatform
import Foundation

/// The file named by `--key-file`.
enum MissionKeyFile {
  /// The most bytes of the file: a key in hexadecimal digits, with blanks around it.
  static let bytesMax = 1 << 10

  /// Returns the key; `nil` if no file is named. Warns on standard error if all users may read the
  /// file.
  static func key(_ arguments: ParsedArguments) throws -> [UInt8]? {
    guard let path = arguments.stringIfPresent("key-file") else { return nil }
    let file = try read(path)
    guard let key = key(in: file.content) else { throw failure(path, file.content) }
    if file.isOpen {
      try TextOutput.standardError.line(
        "ferry: all users of this machine may read the key in \(path): run `chmod 600 \(path)`"
          .escapedForTerminal)
    }
    return key
  }

  private static func read(_ path: String) throws -> SecretFile {
    do {
      return try SecretFile(path, bytesMax: bytesMax)
    } catch {
      throw unreadable(path, error.why)
    }
  }

  /// Returns the key in a file's bytes: 32 bytes that are not all digits, or 64 hexadecimal digits.
  static func key(in content: [UInt8]) -> [UInt8]? {
    if content.count == ContentHash.byteCount, !isDigits(content) { return content }
    guard content.count <= bytesMax else { return nil }
    let text = String(decoding: content, as: UTF8.self).trimmedASCII
    return ContentHash(text.lowercasedASCII)?.bytes
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

import FerryTestSupport
import Foundation

/// A folder to publish as a mission.
final class Draft: Sendable {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory(prefix: "ferry-draft")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  var path: String { directory.file("draft").path }

  func file(_ name: String) -> URL { URL(filePath: path).appending(path: name) }

  func write(_ name: String, _ bytes: [UInt8]) throws {
    let file = file(name)
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: file)
  }

  /// Writes a large file of seeded random bytes. No two parts of it are the same.
  func write(_ name: String, mebibytes: Int, seed: UInt64 = 1) throws {
    var part = Self.content(seed, 1 << 16)
    try Data().write(to: file(name))
    let handle = try FileHandle(forWritingTo: file(name))
    for number in 0..<mebibytes * 16 {
      withUnsafeBytes(of: number) { part.replaceSubrange(0..<8, with: $0) }
      try handle.write(contentsOf: part)
    }
    try handle.close()
  }

  /// Returns whether a folder of a mission holds these very files, byte for byte.
  func isEqual(to folder: String) throws -> Bool {
    let names = try FileManager.default.subpathsOfDirectory(atPath: path).sorted()
    guard try FileManager.default.subpathsOfDirectory(atPath: folder).sorted() == names else {
      return false
    }
    return try names.allSatisfy { name in
      if try file(name).resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true {
        return true
      }
      let copy = URL(filePath: folder).appending(path: name)
      return try Data(contentsOf: file(name)) == Data(contentsOf: copy)
    }
  }

  /// Returns pseudorandom bytes, the same each time.
  static func content(_ seed: UInt64, _ count: Int) -> [UInt8] { seededBytes(seed, count) }
}

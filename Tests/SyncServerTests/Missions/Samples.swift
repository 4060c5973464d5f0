import FerryProtocol
import FerryTestSupport
import Foundation

@testable import FerryMissionServer

/// A blob directory in a new folder, and files beside it.
struct BlobFixture {
  let folder: TemporaryDirectory
  let blobs: BlobDirectory

  init() throws {
    folder = try TemporaryDirectory(prefix: "ferry-blobs")
    blobs = try BlobDirectory(folder.file("blobs").path)
  }

  /// Writes a file with `count` bytes from a seed; returns the path.
  func file(_ name: String, _ count: Int, seed: UInt8 = 1) throws -> String {
    let path = folder.file(name)
    try FileManager.default.createDirectory(
      at: path.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(Self.bytes(count, seed: seed)).write(to: path)
    return path.path
  }

  /// Returns bytes without a period, as a chunk could hide one.
  static func bytes(_ count: Int, seed: UInt8 = 1) -> [UInt8] {
    var state = UInt64(seed) &+ 0x9E37_79B9_7F4A_7C15
    return (0..<count).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 33)
    }
  }

  /// Returns all files below the directory, relative to it, sorted.
  func names() throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: blobs.path).filter { name in
      var isFolder: ObjCBool = false
      _ = FileManager.default.fileExists(
        atPath: blobs.path + "/" + name, isDirectory: &isFolder)
      return !isFolder.boolValue
    }.sorted()
  }
}

import FerryProtocol
import Foundation

/// The files of this checkout read by tests.
enum ProjectFiles {
  /// The folder of Package.swift.
  static let root: URL = {
    var folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    while folder.path != "/" && !exists("Package.swift", in: folder) {
      folder.deleteLastPathComponent()
    }
    return folder
  }()

  /// Returns a file's bytes without the last newline.
  static func bytes(_ path: String) throws -> [UInt8] {
    var bytes = [UInt8](try Data(contentsOf: root.appendingPathComponent(path)))
    if bytes.last == 0x0A { bytes.removeLast() }
    return bytes
  }

  static func text(_ path: String) throws -> String {
    String(decoding: try bytes(path), as: UTF8.self)
  }

  /// Returns a golden message.
  static func fixture(_ name: String) throws -> [UInt8] {
    try bytes("Protocol/fixtures/\(name).json")
  }

  /// Returns names of the golden messages in a folder, sorted, without `.json`.
  static func fixtures(in folder: String) throws -> [String] {
    try names(in: "Protocol/fixtures/\(folder)").filter { $0.hasSuffix(".json") }
      .map { String($0.dropLast(5)) }
  }

  /// Returns the names in a folder, sorted.
  static func names(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(
      atPath: root.appendingPathComponent(folder).path
    ).sorted()
  }

  static func exists(_ path: String) -> Bool { exists(path, in: root) }

  private static func exists(_ path: String, in folder: URL) -> Bool {
    FileManager.default.fileExists(atPath: folder.appendingPathComponent(path).path)
  }
}

extension Packet {
  init(_ json: String) throws {
    self = try Packet(decoding: Array(json.utf8), limits: .standard)
  }
}

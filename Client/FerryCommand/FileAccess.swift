import CommandLineKit
import Foundation

/// What the commands need of the file system.
enum FileAccess {
  static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  /// The path from the root on.
  static func wholePath(_ path: String) -> String {
    URL(fileURLWithPath: path).standardizedFileURL.path
  }

  /// The file's bytes, mapped where the system can.
  static func contents(of path: String) throws -> Data {
    do {
      return try Data(contentsOf: URL(fileURLWithPath: path), options: .mappedIfSafe)
    } catch {
      throw CommandFailure(
        "\(path) cannot be read", why: error.localizedDescription, next: "check the file's name",
        code: "cannot_read")
    }
  }
}

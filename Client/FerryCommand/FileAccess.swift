import FerryCommandLine
import Foundation

/// The file system calls of the commands.
enum FileAccess {
  static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  /// Returns the absolute path.
  static func wholePath(_ path: String) -> String {
    URL(fileURLWithPath: path).standardizedFileURL.path
  }

  /// Returns the file's bytes, mapped if the system can.
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

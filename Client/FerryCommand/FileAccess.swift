import FerryCommandLine
import Foundation

/// The file system calls of the commands.
enum FileAccess {
  static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  /// Returns the absolute path.
  static func wholePath(_ path: String) -> String {
    URL(fileURLWithPath: path).standardizedFileURL.path
  }

  /// Returns all bytes of standard input.
  static func standardInput() throws -> Data {
    do {
      return try FileHandle.standardInput.readToEnd() ?? Data()
    } catch {
      throw CommandFailure(
        "standard input cannot be read", why: error.localizedDescription,
        next: "check the program or file before it", code: "cannot_read")
    }
  }

  /// Returns all of standard input as text.
  static func standardInputText() throws -> String {
    guard let text = String(validating: try standardInput(), as: UTF8.self) else {
      throw CommandFailure(
        "standard input is not text", why: "it is not valid UTF-8",
        next: "convert it: iconv -f ENCODING -t UTF-8", status: .usage, code: "not_text")
    }
    return text
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

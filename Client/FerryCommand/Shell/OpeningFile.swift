import FerryCommandLine
import Foundation

/// A file that leads the user's browser to a one-time address.
///
/// The command line of a process is visible to all users of the machine. So the browser gets the
/// path of a file that only its owner can read, and not the address.
struct OpeningFile {
  private let directory: URL

  /// Writes the file, and opens it in the user's browser.
  static func open(_ address: String) throws -> OpeningFile {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("ferry-shell-\(UUID().uuidString)")
    let file = directory.appendingPathComponent("open.html")
    let content = """
      <!doctype html><meta charset="utf-8"><title>Opening</title>
      <meta name="referrer" content="no-referrer">
      <meta http-equiv="refresh" content="0;url=\(address)">
      """
    do {
      try FileManager.default.createDirectory(
        at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
      try Data(content.utf8).write(to: file)
      try run(file)
    } catch {
      try? FileManager.default.removeItem(at: directory)
      try TextOutput.standardError.lines([
        "ferry: the browser was not opened", "  why: \(error.localizedDescription)",
        "  next: open the printed address yourself",
      ])
    }
    return OpeningFile(directory: directory)
  }

  private static func run(_ file: URL) throws {
    #if os(macOS) || os(Linux)
      let process = Process()
      #if os(macOS)
        process.executableURL = URL(fileURLWithPath: "/usr/bin/open")
      #else
        process.executableURL = URL(fileURLWithPath: "/usr/bin/xdg-open")
      #endif
      process.arguments = [file.path]
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      try process.run()
    #endif
  }

  /// Removes the file.
  func remove() { try? FileManager.default.removeItem(at: directory) }
}

import FerryCommandLine
import Foundation

/// A file to lead the user's browser to a one-time address.
///
/// The command line of a process is visible to all users of the machine. So the browser gets not
/// the address, but the path of a file readable only for the owner.
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
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
      try run(file)
    } catch {
      try? FileManager.default.removeItem(at: directory)
      let reason = (error as? Failure)?.reason ?? error.localizedDescription
      try TextOutput.standardError.lines([
        "ferry: the browser was not opened", "  why: \(reason)",
        "  next: open the printed address yourself",
      ])
    }
    return OpeningFile(directory: directory)
  }

  private struct Failure: Error {
    let reason: String
  }

  private static func run(_ file: URL) throws {
    #if os(macOS) || os(Linux)
      #if os(macOS)
        let name = "open"
      #else
        let name = "xdg-open"
      #endif
      guard let program = ProgramPath.find(name) else {
        throw Failure(reason: "\(name) is not on the PATH")
      }
      let process = Process()
      process.executableURL = program
      process.arguments = [file.path]
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      try process.run()
    #endif
  }

  /// Removes the file.
  func remove() { try? FileManager.default.removeItem(at: directory) }
}

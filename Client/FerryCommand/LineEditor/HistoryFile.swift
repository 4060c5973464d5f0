import FerryPlatform
import Foundation

/// A file with the statements typed by a user, readable by the owner only (mode 0600). Several
/// processes may add to it. An unusable file is no error: the history is then empty.
///
/// ```swift
/// let file = HistoryFile.ofUser(named: "sql_history")
/// file?.append("SELECT 1;")
/// ```
package struct HistoryFile: Sendable {
  /// Above this number of bytes the file is shortened to the last entries.
  package static let bytesMax = 1 << 20

  /// The path of the file.
  package let path: String

  /// Creates the history at a path; touches no file.
  package init(path: String) { self.path = path }

  /// Returns the user's file in `$XDG_STATE_HOME/ferry`, or in `~/.local/state/ferry`; `nil` if
  /// neither has an absolute path (XDG Base Directory Specification 0.8).
  package static func ofUser(
    named name: String, environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> HistoryFile? {
    let state = environment["XDG_STATE_HOME"] ?? ""
    if state.begins(with: "/") { return HistoryFile(path: "\(state)/ferry/\(name)") }
    guard let home = environment["HOME"], home.begins(with: "/") else { return nil }
    return HistoryFile(path: "\(home)/.local/state/ferry/\(name)")
  }

  /// Returns the last `count` entries, oldest first.
  package func entries(last count: Int) -> [String] {
    guard let data = FileManager.default.contents(atPath: path) else { return [] }
    let entries = HistoryText.entries(String(decoding: data, as: UTF8.self), last: count)
    if data.count > Self.bytesMax { replace(with: entries) }
    return entries
  }

  /// Adds an entry at once. Creates the file and all folders (mode 0700) if they are absent.
  /// Returns `true` if the entry was written.
  @discardableResult
  package func append(_ entry: String) -> Bool {
    guard let line = HistoryText.line(entry) else { return false }
    makeFolder()
    let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    // Also a file opened to others by another umask or a copy.
    guard fchmod(descriptor, 0o600) == 0 else { return false }
    let bytes = Array(line.utf8)
    return write(descriptor, bytes, bytes.count) == bytes.count
  }

  private func makeFolder() {
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent()
    try? FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  /// Replaces the file in one step.
  private func replace(with entries: [String]) {
    let temporary = HistoryFile(path: "\(path).\(getpid())")
    try? FileManager.default.removeItem(atPath: temporary.path)
    let isComplete = entries.allSatisfy { temporary.append($0) }
    if !isComplete || rename(temporary.path, path) != 0 {
      try? FileManager.default.removeItem(atPath: temporary.path)
    }
  }
}

import Foundation

/// A fresh directory, removed with all it holds when this object goes away.
package final class TemporaryDirectory: Sendable {
  package let url: URL

  /// Creates it, by default below TMPDIR; `prefix` shows the origin if the process is killed.
  package init(prefix: String = "ferry-test", in parent: URL? = nil) throws {
    url = (parent ?? FileManager.default.temporaryDirectory)
      .appending(path: "\(prefix)-\(UUID().uuidString.prefix(13))", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  deinit {
    // A missing directory needs no removal.
    try? FileManager.default.removeItem(at: url)
  }

  /// Returns a path below the directory; creates no file.
  package func file(_ name: String) -> URL { url.appending(path: name) }
}

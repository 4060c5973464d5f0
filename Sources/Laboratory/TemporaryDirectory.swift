import Foundation

/// A fresh directory, removed with all it holds when this object goes away.
package final class TemporaryDirectory: Sendable {
  package let url: URL

  /// `prefix` shows what left it, should the process be killed.
  package init(prefix: String = "ferry-test") throws {
    url = FileManager.default.temporaryDirectory
      .appending(path: "\(prefix)-\(UUID().uuidString.prefix(13))", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  deinit {
    // A directory that is gone already is as good.
    try? FileManager.default.removeItem(at: url)
  }

  /// A path below the directory; nothing is created.
  package func file(_ name: String) -> URL { url.appending(path: name) }
}

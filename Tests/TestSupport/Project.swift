import Foundation

/// The files of this package.
package enum Project {
  private static let root = URL(filePath: #filePath).appending(path: "../../..").standardized

  /// Returns the place of a file or folder.
  package static func file(_ path: String) -> URL { root.appending(path: path) }

  /// Returns the content of a file.
  package static func text(_ path: String) throws -> String {
    try String(contentsOf: file(path), encoding: .utf8)
  }
}

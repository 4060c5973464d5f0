import Foundation

/// A file with a secret, or standard input.
package struct SecretFile: Sendable, Equatable {
  /// The file's bytes: at most one more than the limit.
  package let content: [UInt8]
  /// True if all users of this machine may read the file.
  package let isOpen: Bool

  /// The path of standard input.
  package static let standardInput = "-"

  /// Reads a file. Never blocks for the writer of a pipe to come.
  ///
  /// - Parameters:
  ///   - path: The file; ``standardInput`` for standard input.
  ///   - bytesMax: The most bytes of a secret.
  /// - Throws: ``Unreadable`` with the reason.
  package init(_ path: String, bytesMax: Int) throws(Unreadable) {
    let isInput = path == Self.standardInput
    let descriptor = isInput ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw Unreadable(errno) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Unreadable(errno) }
    let type = status.st_mode & S_IFMT
    if type == S_IFDIR { throw Unreadable(EISDIR) }
    if !isInput {
      _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
    }
    var content: [UInt8] = []
    while content.count <= bytesMax {
      var part = [UInt8](repeating: 0, count: bytesMax + 1 - content.count)
      let count = read(descriptor, &part, part.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw Unreadable(errno) }
      if count == 0 { break }
      content += part.prefix(count)
    }
    self.content = content
    isOpen = type == S_IFREG && status.st_mode & 0o004 != 0
  }

  /// The reason why a file cannot be read.
  package struct Unreadable: Error, Equatable {
    /// The system's words.
    package let why: String

    fileprivate init(_ code: Int32) {
      why = code == EISDIR ? "it is a folder" : String(cString: strerror(code))
    }
  }
}

import Foundation

/// Copies of this process' open files, as in a process that is forked and not yet executed.
package final class InheritedFiles {
  private let descriptors: [Int32]

  /// Whether the file is open.
  package var isAny: Bool { !descriptors.isEmpty }

  /// Copies the descriptors of an open file.
  package init(of path: String) throws {
    let path = URL(filePath: path).resolvingSymlinksInPath().path
    let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
    descriptors = open.compactMap { name in
      let target = try? FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/self/fd/\(name)")
      return target == path ? Int32(name).map { fcntl($0, F_DUPFD_CLOEXEC, 0) } : nil
    }
  }

  deinit { for descriptor in descriptors { close(descriptor) } }
}

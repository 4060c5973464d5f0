import FerryPlatform
import FerryProtocol
import Foundation

/// The files of a folder to publish. It blocks.
package enum FolderListing {
  /// Returns the paths of all regular files below `folder`, relative to it, sorted.
  ///
  /// A symbolic link counts as the target inside of the folder. A link out of the folder, a loop, a
  /// pipe and the like are refused by name. Names with a dot at the beginning, such as `.DS_Store`
  /// and `.git`, are left out.
  package static func files(in folder: String) throws(MissionDraftError) -> [String] {
    try contents(of: folder).files
  }

  /// Returns the same, and how many names were left out.
  package static func contents(
    of folder: String
  ) throws(MissionDraftError) -> (files: [String], hidden: Int) {
    guard let root = resolved(folder) else {
      throw MissionDraftError("\(folder): \(String(cString: strerror(errno)))")
    }
    var (files, hidden) = ([String](), 0)
    var folders = [""]
    var seen: Set<Name> = []
    while let prefix = folders.popLast() {
      let path = root + "/" + prefix
      guard let real = resolved(path) else { throw failure(prefix) }
      guard seen.insert(Name(real)).inserted else {
        throw MissionDraftError("\(prefix) is a duplicate: a symbolic link leads back to it")
      }
      for name in try names(in: path, prefix) {
        if name.begins(with: ".") {
          hidden += 1
          continue
        }
        let relative = prefix.isEmpty ? name : "\(prefix)/\(name)"
        try check(relative, in: root)
        var status = stat()
        guard stat("\(root)/\(relative)", &status) == 0 else { throw failure(relative) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: files.append(relative)
        case S_IFDIR: folders.append(relative)
        default: throw MissionDraftError("item \(relative) is not a regular file")
        }
      }
    }
    guard !files.isEmpty else { throw MissionDraftError("there are no files in \(folder)") }
    return (files.sorted(), hidden)
  }

  /// Returns the file named by a manifest, in the manifest's folder or below. The path is absolute
  /// and has no symbolic links.
  package static func file(_ name: String, in folder: String) throws(MissionDraftError) -> String {
    guard !name.begins(with: "/") else { throw MissionDraftError("file “\(name)” is absolute") }
    guard let root = resolved(folder) else {
      throw MissionDraftError("\(folder): \(String(cString: strerror(errno)))")
    }
    return try check(name, in: root)
  }

  /// Returns the path of a file or folder without symbolic links.
  @discardableResult
  private static func check(
    _ relative: String, in root: String
  ) throws(MissionDraftError) -> String {
    guard let real = resolved("\(root)/\(relative)") else { throw failure(relative) }
    guard real.isSame(as: root) || real.begins(with: root.isSame(as: "/") ? root : root + "/")
    else {
      throw MissionDraftError("item \(relative) leads out of the folder, to \(real)")
    }
    return real
  }

  private static func names(
    in path: String, _ relative: String
  ) throws(MissionDraftError) -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    } catch {
      throw MissionDraftError("\(relative.isEmpty ? path : relative) cannot be read")
    }
  }

  private static func failure(_ relative: String) -> MissionDraftError {
    let code = errno
    // Bytes that are not UTF-8 were replaced when the folder was listed: this name leads nowhere.
    // text: a scalar is looked for
    let isGarbled = code == ENOENT && relative.unicodeScalars.contains("\u{FFFD}")
    let why = isGarbled ? "its name is not UTF-8" : String(cString: strerror(code))
    return MissionDraftError("item \(relative): \(why)")
  }

  /// Returns the path without symbolic links; `nil`, with errno, if nothing is there.
  private static func resolved(_ path: String) -> String? {
    guard let real = realpath(path, nil) else { return nil }
    defer { free(real) }
    return String(cString: real)
  }
}

import Foundation

/// The programs built by this package, next to the test bundle.
package enum Executables {
  package static func ferry() throws -> URL { try find("ferry") }
  package static func ferryd() throws -> URL { try find("ferryd") }
  package static func ferryBench() throws -> URL { try find("ferry-bench") }
  package static func ferryChaos() throws -> URL { try find("ferry-chaos") }
  package static func ferrySim() throws -> URL { try find("ferry-sim") }
  package static func ferryTasks() throws -> URL { try find("ferry-tasks") }
  package static func ferryCourses() throws -> URL { try find("ferry-courses") }

  /// The extension loaded into SQLite by other programs.
  package static func ferrySQLite() throws -> URL { try find("libferry_sqlite.so") }

  /// Looks beside the running test program, then in the directories above it.
  private static func find(_ name: String) throws -> URL {
    var directory = runningProgram.deletingLastPathComponent()
    for _ in 0..<4 {
      let candidate = directory.appending(path: name)
      if isProgram(candidate) { return candidate }
      directory.deleteLastPathComponent()
    }
    throw TestSupportError(
      "\(name) is not beside \(runningProgram.path): build it with `swift build --product \(name)`")
  }

  private static func isProgram(_ url: URL) -> Bool {
    var isDirectory: ObjCBool = false
    return FileManager.default.fileExists(atPath: url.path, isDirectory: &isDirectory)
      && !isDirectory.boolValue && FileManager.default.isExecutableFile(atPath: url.path)
  }

  private static var runningProgram: URL {
    let link = URL(filePath: "/proc/self/exe")
    return FileManager.default.fileExists(atPath: link.path)
      ? link.resolvingSymlinksInPath() : URL(filePath: CommandLine.arguments[0])
  }
}

import FerryLaboratory
import Foundation

/// The files of an example outside of the build.
enum ExampleFiles {
  /// The interpreter for which the system's packages install libraries.
  static let python = URL(filePath: "/usr/bin/python3")

  /// Returns a file of the folder Examples of the repository in which the running program was
  /// built.
  static func find(_ path: String) throws -> URL {
    let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    var directory = program.deletingLastPathComponent()
    while directory.path != "/" {
      let candidate = directory.appending(path: "Examples").appending(path: path)
      if FileManager.default.fileExists(atPath: candidate.path) { return candidate }
      directory.deleteLastPathComponent()
    }
    throw ChaosError(
      "no folder above \(program.path) has Examples/\(path): "
        + "run the program that was built in a clone of Ferry")
  }

  /// - Throws: ``ChaosError`` if the interpreter or a library of it is not installed.
  static func checkPython(with library: String) async throws {
    let found = try? await ChildProcess.run(python, ["-c", "import \(library)"])
    guard found?.status == .exited(0) else {
      throw ChaosError(
        "Python cannot import \(library): run `apt-get install python3-\(library)` first")
    }
  }
}

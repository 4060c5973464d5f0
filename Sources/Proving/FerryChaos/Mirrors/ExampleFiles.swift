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

  /// Returns the interpreter of a virtual environment with Django, which it makes if it is missing.
  ///
  /// - Throws: ``ChaosError`` if PyPI cannot be reached, or a virtual environment cannot be made.
  static func makeDjango() async throws -> String {
    let script = try find("Backend/environment.sh")
    let ended = try await ChildProcess.run(URL(filePath: "/bin/sh"), [script.path])
    guard ended.status == .exited(0) else { throw ChaosError(ended.error) }
    return ended.output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// - Throws: ``ChaosError`` if the interpreter or a library of it is not installed.
  static func checkPython(_ python: URL, with library: String) async throws {
    let found = try? await ChildProcess.run(python, ["-c", "import \(library)"])
    guard found?.status == .exited(0) else {
      throw ChaosError(
        "Python cannot import \(library): run `apt-get install python3-\(library)` first")
    }
  }
}

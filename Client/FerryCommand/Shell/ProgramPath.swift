import FerryPlatform
import Foundation

/// The places of programs started by the shell.
enum ProgramPath {
  /// Finds a program on the PATH; `nil` if it is not there. Relative folders of the PATH are left
  /// out.
  ///
  /// - Parameter isBeside: true if a program in the folder of this one comes first.
  static func find(_ name: String, isBeside: Bool = false) -> URL? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    var folders = path.words(at: ":").filter { $0.begins(with: "/") }.map(String.init)
    if isBeside, let own = Bundle.main.executableURL?.deletingLastPathComponent().path {
      folders.insert(own, at: 0)
    }
    return folders.map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
      .map { URL(fileURLWithPath: $0) }
  }
}

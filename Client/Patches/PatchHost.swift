import FerryPlatform
import Foundation

/// The program `ferry-patch`; it runs each patch in a separate process. `make patches` builds it.
///
/// iOS starts no processes: there, behaviours run their native code.
public struct PatchHost: Sendable, Equatable {
  /// The path of the program.
  public var path: String

  public init(path: String) { self.path = path }

  /// `ferry-patch` in the folder of the running program, as `make install` puts it; `nil` if absent.
  public static var installed: PatchHost? {
    guard let program = Bundle.main.executablePath else { return nil }
    let folder = URL(fileURLWithPath: program).resolvingSymlinksInPath()
      .deletingLastPathComponent()
    let path = folder.appendingPathComponent("ferry-patch").path
    return access(path, X_OK) == 0 ? PatchHost(path: path) : nil
  }
}

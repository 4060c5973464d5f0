import FerryTestSupport
import Foundation
import Testing

/// Other writers of a replica's file: the shell `sqlite3`, and Python.
enum OtherWriter: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case shell
  case python

  var testDescription: String { rawValue }

  /// The extension without `.so`, which SQLite adds.
  static func library() throws -> String {
    try Executables.ferrySQLite().deletingPathExtension().path
  }

  /// Runs SQL on a file to the end, each script for itself, until one fails.
  ///
  /// - Parameter isLoading: whether the program loads the extension first.
  func run(_ scripts: [String], on path: String, isLoading: Bool = true) async throws
    -> ChildProcess.Finished
  {
    let library = try Self.library()
    switch self {
    case .shell:
      let load = isLoading ? [".load '\(library)'"] : []
      return try await ChildProcess.run(
        URL(filePath: "/usr/bin/sqlite3"),
        ["-batch", "-bail", "-cmd", ".timeout 30000", path] + load + scripts)
    case .python:
      return try await ChildProcess.run(
        Self.interpreter, ["-c", Self.program, path, isLoading ? library : ""] + scripts)
    }
  }

  /// Python of the system, which may load extensions; others may not.
  static let interpreter = URL(filePath: "/usr/bin/python3")

  private static let program = """
    import sqlite3, sys
    path, library, *scripts = sys.argv[1:]
    connection = sqlite3.connect(path, timeout=30, isolation_level=None)
    if library:
        connection.enable_load_extension(True)
        connection.load_extension(library)
    for script in scripts:
        for row in connection.execute(script) if ';' not in script else connection.executescript(script):
            print('|'.join(str(value) for value in row))
    connection.close()
    """
}

import FerryTestSupport
import Foundation
import Testing

/// `make install` and `make uninstall`, with the programs of the tests.
@Suite("Installation", .hangLimit)
struct InstallationTests {
  private static let installed: Set = [
    "usr/bin/ferry", "usr/bin/ferryd", "usr/bin/ferry-patch", "usr/lib/libferry_sqlite.so",
    "usr/share/bash-completion/completions/ferry",
    "usr/share/bash-completion/completions/ferryd", "usr/share/zsh/site-functions/_ferry",
    "usr/share/zsh/site-functions/_ferryd", "usr/share/fish/vendor_completions.d/ferry.fish",
    "usr/share/fish/vendor_completions.d/ferryd.fish",
  ]

  @Test("the programs and their completion are installed below DESTDIR and PREFIX, and removed")
  func installAndRemove() async throws {
    let stage = try TemporaryDirectory()
    let root = stage.file("a root")
    try await make("install", ["PREFIX=/usr", "DESTDIR=\(root.path)"])
    #expect(try files(below: root) == Self.installed)
    let ferry = root.appending(path: "usr/bin/ferry")
    let version = try await ChildProcess.run(ferry, ["--version"])
    #expect(version.output.hasPrefix("ferry "))
    let script = root.appending(path: "usr/share/bash-completion/completions/ferry").path
    let loaded = try await ChildProcess.run(
      URL(filePath: "/bin/bash"), ["-c", "source '\(script)' && complete -p ferry"])
    #expect(loaded.status == .exited(0) && loaded.output.contains("_ferry"), "\(loaded.error)")
    // A second installation replaces the first one.
    try await make("install", ["PREFIX=/usr", "DESTDIR=\(root.path)"])
    let other = root.appending(path: "usr/bin/other")
    try Data("other".utf8).write(to: other)
    try await make("uninstall", ["PREFIX=/usr", "DESTDIR=\(root.path)"])
    #expect(try files(below: root) == ["usr/bin/other"])
  }

  @Test("an installation without built programs, or to a relative path, installs nothing")
  func refused() async throws {
    let stage = try TemporaryDirectory()
    let root = stage.file("root")
    let unbuilt = try await make(
      "install", ["DESTDIR=\(root.path)", "PROGRAMS=\(stage.url.path)"], exits: 2)
    #expect(unbuilt.error.contains("make build"))
    let relative = try await make("install", ["DESTDIR=\(root.path)", "PREFIX=usr"], exits: 2)
    #expect(relative.error.contains("absolute path"))
    #expect(!FileManager.default.fileExists(atPath: root.path))
  }

  /// Runs make as `sudo` does, which builds nothing.
  @discardableResult
  private func make(
    _ target: String, _ settings: [String], exits code: Int32 = 0,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> ChildProcess.Finished {
    let programs = try Executables.ferry().deletingLastPathComponent().path
    let finished = try await ChildProcess.run(
      URL(filePath: "/usr/bin/make"),
      [target, "PROGRAMS=\(programs)", "PATCH_HOST=/bin/true"] + settings,
      environment: ["SUDO_USER": "somebody", "MAKEFLAGS": ""], directory: Project.file(""))
    #expect(
      finished.status == .exited(code), "\(finished.error)", sourceLocation: sourceLocation)
    return finished
  }

  private func files(below root: URL) throws -> Set<String> {
    let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path)
    return Set(
      paths.filter { path in
        var isDirectory: ObjCBool = false
        let full = root.appending(path: path).path
        return FileManager.default.fileExists(atPath: full, isDirectory: &isDirectory)
          && !isDirectory.boolValue
      })
  }
}

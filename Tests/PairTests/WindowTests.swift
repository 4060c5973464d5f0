import FerryTestSupport
import Foundation
import Testing

/// The window of Client/Window under a display without a screen.
@Suite("The window of `ferry shell`", .serialized, .hangLimit)
struct WindowTests {
  private func publish(_ version: Int, _ stage: WindowStage) throws {
    let page = """
      <!doctype html><html lang="en"><head><title>Window \(version)</title></head>
      <body><script type="module" src="app.js"></script></body></html>
      """
    let script = """
      await ferry.call("data.write", {changes: [{table: "visits", action: "insert",
        values: {id: crypto.randomUUID(), version: \(version)}}]});
      await ferry.ready();
      """
    let json = #"{"name":"probe","version":"\#(version)","services":[{"name":"data"}]}"#
    try Data(page.utf8).write(to: stage.folder.file("index.html"))
    try Data(script.utf8).write(to: stage.folder.file("app.js"))
    try Data(json.utf8).write(to: stage.folder.file("ferry-bundle.json"))
  }

  @Test("a page works in the window, and a page whose process ends gives way to the last good one")
  func window() async throws {
    let stage = try await WindowStage()
    try await stage.ferry("sql", "CREATE TABLE visits(id TEXT PRIMARY KEY, version INTEGER)")
    try await stage.ferry("track", "visits")
    try publish(1, stage)
    let shell = try ChildProcess(
      try Executables.ferry(),
      stage.replica + ["shell", stage.folder.url.path, "--grant", "data", "--window", "--json"],
      environment: stage.environment)
    _ = try await shell.line { $0.contains("confirmed") && $0.contains("\"version\":\"1\"") }
    let rows = try await stage.ferry("sql", "SELECT version FROM visits", "--json")
    #expect(rows.contains("{\"version\":1}"))

    // The next load shows version 2, whose process ends.
    try publish(2, stage)
    try await stage.press("ctrl+r", in: "Window 1")
    _ = try await shell.line { $0.contains("confirmed") && $0.contains("\"version\":\"2\"") }
    let before = shell.lineCount
    try endPage(of: shell)
    _ = try await shell.line(after: before) {
      $0.contains("failed") && $0.contains("\"version\":\"2\"")
        && $0.contains("its process crashed; the last good version follows")
    }
    _ = try await shell.line(after: before) {
      $0.contains("confirmed") && $0.contains("\"version\":\"1\"")
    }
    try await stage.press("ctrl+q", in: "Window 1")
    #expect(try await shell.exitStatus() == .exited(0), "\(shell.error)")
  }

  /// Kills the process of the page in the shell's window.
  private func endPage(of shell: ChildProcess) throws {
    func children(_ parent: Int32) -> [Int32] {
      let path = "/proc/\(parent)/task"
      let tasks = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
      return tasks.flatMap { task -> [Int32] in
        let text = (try? String(contentsOfFile: "\(path)/\(task)/children", encoding: .utf8)) ?? ""
        return text.split(separator: " ").compactMap { Int32($0) }
      }
    }
    var (all, rest) = ([Int32](), [shell.processID])
    while let next = rest.popLast() {
      all.append(next)
      rest += children(next)
    }
    let page = all.first { process in
      let name = try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)
      return name?.contains("WebKitWebProcess") == true
    }
    guard let page else { throw TestSupportError("the window has no process of a page") }
    kill(page, SIGKILL)
  }

  @Test("the window needs the address of a shell and a display")
  func errors() async throws {
    let stage = try await WindowStage()
    let program = stage.programs.file("ferry-window")
    let other = try await ChildProcess.run(
      program, environment: stage.environment, input: "https://example.org/\n")
    #expect(other.status == .exited(64))
    let blind = try await ChildProcess.run(
      program, environment: ["DISPLAY": "", "WAYLAND_DISPLAY": ""],
      input: "http://127.0.0.1:9/-/open/x\n")
    #expect(blind.status == .exited(69))
    #expect(blind.error.contains("there is no display"))
  }
}

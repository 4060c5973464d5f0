import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// `ferryd bundle …` as processes, on the embedded store and through a server.
@Suite("The bundles' commands", .hangLimit)
struct DaemonBundleTests {
  private let daemon: EmbeddedDaemon
  private let folder: TemporaryDirectory

  init() throws {
    daemon = try EmbeddedDaemon()
    folder = try TemporaryDirectory(prefix: "ferryd-bundles")
  }

  private var app: String { folder.file("app").path }

  private func write(_ name: String, _ text: String) throws {
    let path = folder.file(name)
    try FileManager.default.createDirectory(
      at: path.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: path)
  }

  private func declare(_ version: String, _ more: String = "") throws {
    try write("app/ferry-bundle.json", #"{"name":"board","version":"\#(version)"\#(more)}"#)
  }

  private func makeApp() async throws {
    #expect(try await daemon.run("space", "create", "notes").status == .exited(0))
    try write("app/index.html", "<h1>Board</h1>")
    try write("app/js/app.js", "export {}")
    try declare("1")
  }

  private func run(_ arguments: String..., on target: [String]? = nil) async throws
    -> ChildProcess.Finished
  {
    try await ChildProcess.run(
      try Executables.ferryd(),
      ["bundle"] + arguments + ["--space", "notes"] + (target ?? ["--data", daemon.data]))
  }

  @Test("a folder is published, rolled out, shown and withdrawn, on the store")
  func local() async throws {
    try await makeApp()
    try await life(on: ["--data", daemon.data])
  }

  @Test("a folder is published, rolled out, shown and withdrawn, through a server")
  func remote() async throws {
    try await makeApp()
    let token = try await daemon.token("admin")
    let (server, port) = try await daemon.serve()
    try await life(on: ["--server", "http://127.0.0.1:\(port)", "--token", token])
    server.send(SIGTERM)
    #expect(try await server.exitStatus() == .exited(0))
  }

  private func life(on target: [String]) async throws {
    let first = try await run("publish", app, "--percent", "10", on: target)
    #expect(first.output == "published board 1: 2 files, 23 B, for 10% of the devices\n")
    let same = try await run("publish", app, on: target)
    #expect(same.output == "unchanged board 1: 2 files, 23 B, for 10% of the devices\n")
    try write("app/js/app.js", "export const a = 1")
    let other = try await run("publish", app, on: target)
    #expect(other.status == .exited(1) && other.error.contains("as another version"))
    try declare("1.1", #","minShell":"1","services":[{"name":"data"}]"#)
    let second = try await run("publish", app, "--percent", "0.5", "--json", on: target)
    for part in [#""mission":"bundle.board.1.1""#, #""minShell":"1""#, #""percent":0.5"#] {
      #expect(second.output.contains(part), "\(second.output)")
    }
    let promoted = try await run("promote", "board", "--percent", "50", on: target)
    #expect(promoted.output == "board 1.1 is offered to 50% of the devices\n")
    let all = try await run("promote", "board", "1", on: target)
    #expect(all.output == "board 1 is offered to 100% of the devices\n")
    let listed = try await run("list", on: target)
    #expect(listed.output.contains("1.1") && listed.output.contains("50%"), "\(listed.output)")
    let withdrawn = try await run("withdraw", "board", on: target)
    #expect(withdrawn.output == "board 1.1 is withdrawn\n")
    let again = try await run("publish", app, on: target)
    #expect(again.status == .exited(1) && again.error.contains("was withdrawn"), "\(again.error)")
    let shown = try await run("show", "board", on: target)
    #expect(shown.output.contains("withdrawn") && shown.output.contains("SUCCESSES"))
    #expect(try await run("withdraw", "board", on: target).output == "board 1 is withdrawn\n")
    let none = try await run("withdraw", "board", on: target)
    #expect(none.status == .exited(1) && none.error.contains("next: publish another version"))
  }

  @Test(
    "a folder that declares no valid bundle is not published, and the error says what to do",
    arguments: [
      (#"{"name":"board"}"#, "a bundle needs “version”"),
      (#"{"name":"../x","version":"1"}"#, "a bundle's name has"),
      (#"{"name":"board","version":1}"#, "version is a text of 1 to 4 numbers"),
      (#"{"name":"board","version":"1","entry":"main.html"}"#, "its entry “main.html”"),
      (#"{"name":"board","version":"1","entry":"../../etc/passwd"}"#, "its entry “../../etc/"),
      (#"{"name":"board","version":"1","entri":"a"}"#, "'entri' is none of name, version"),
      ("{", "ends too early"),
    ])
  func invalid(json: String, reason: String) async throws {
    try await makeApp()
    try write("app/ferry-bundle.json", json)
    let failed = try await run("publish", app)
    #expect(failed.status == .exited(1) && failed.error.contains(reason), "\(failed.error)")
    #expect(failed.error.contains("next: "))
    #expect(try await run("list").output.hasPrefix("no bundle is published"))
  }

  @Test("a folder without a declaration, a bad percentage and an unknown bundle are explained")
  func usage() async throws {
    try await makeApp()
    try FileManager.default.removeItem(at: folder.file("app/ferry-bundle.json"))
    let missing = try await run("publish", app)
    #expect(missing.error.contains("it has no file ferry-bundle.json"), "\(missing.error)")
    let file = try await run("publish", folder.file("app/index.html").path)
    #expect(file.error.contains("it is not a folder"), "\(file.error)")
    try declare("1")
    for percent in ["101", "x", "1.234"] {
      let failed = try await run("publish", app, "--percent", percent)
      #expect(failed.status == .exited(2) && failed.error.contains("is not a percentage"))
    }
    for command in ["show", "promote", "withdraw"] {
      let failed = try await run(command, "none")
      #expect(failed.status == .exited(1) && failed.error.contains("there is no bundle none"))
    }
    #expect(try await run("show", "Board").status == .exited(2))
  }
}

import FerryTestSupport
import Foundation
import Testing

@Suite("The command `ferry shell`", .serialized, .hangLimit)
struct ShellCommandTests {
  private static let board = Project.file("Examples/Board/app").path

  private func ferry(_ arguments: String..., at folder: TemporaryDirectory) async throws
    -> ChildProcess.Finished
  {
    try await ChildProcess.run(try Executables.ferry(), arguments, directory: folder.url)
  }

  @Test("errors name the reason and the next step")
  func errors() async throws {
    let folder = try TemporaryDirectory()
    let absent = try await ferry("shell", "none", at: folder)
    #expect(absent.status != .exited(0))
    #expect(absent.error.contains("there is no such folder"))
    #expect(absent.error.contains("ferry-bundle.json"))
    #expect(absent.error.contains("next:"))
    let undeclared = try await ferry("shell", folder.url.path, at: folder)
    #expect(undeclared.error.contains("it has no file ferry-bundle.json"))
    #expect(
      undeclared.error.contains(#"next: write that file with {"name":"board","version":"1"}"#))
    try Data(#"{"name":"board","#.utf8).write(to: folder.file("ferry-bundle.json"))
    let broken = try await ferry("shell", folder.url.path, at: folder)
    #expect(broken.error.contains("it is not JSON: the file ends too early"), "\(broken.error)")
    let unnamed = try await ferry("shell", at: folder)
    #expect(unnamed.error.contains("no bundle was named"))
    let grant = try await ferry("shell", Self.board, "--grant", "data.*", at: folder)
    #expect(grant.error.contains("'data.*' names no service"))
    let origin = try await ferry("shell", Self.board, "--origin", "example.org", at: folder)
    #expect(origin.error.contains("is no server"))
    // A path would limit nothing.
    let path = try await ferry(
      "shell", Self.board, "--origin", "https://a.example/b", "--window", at: folder)
    #expect(path.error.contains("is no server"))
    let unknown = try await ferry("shell", Self.board, "--grant", "dota", "--window", at: folder)
    #expect(unknown.error.contains("there is no service 'dota'"))
    let replica = try await ferry("shell", Self.board, "--grant", "data", at: folder)
    #expect(replica.error.contains("there is no replica"))
  }

  @Test("a fault that is known before the page opens ends the command without an address")
  func early() async throws {
    let folder = try TemporaryDirectory()
    _ = try await ferry("sql", "CREATE TABLE cards(id TEXT PRIMARY KEY)", at: folder)
    _ = try await ferry("track", "cards", at: folder)
    for table in ["none", "ferry_conflicts", "sqlite_schema"] {
      let absent = try await ferry(
        "shell", Self.board, "--grant", "data", "--table", "CARDS", "--table", table, "--no-open",
        at: folder)
      #expect(absent.error.contains("there is no table '\(table)'"), "\(absent.error)")
      #expect(absent.status == .exited(2) && absent.output.isEmpty)
    }
    let alone = try await ferry("shell", Self.board, "--sync", "--no-open", at: folder)
    #expect(alone.error.contains("this replica has no server yet"), "\(alone.error)")
    #expect(alone.status != .exited(0) && alone.output.isEmpty)
    // Without the window's program beside it.
    _ = try await ChildProcess.run(
      URL(filePath: "/bin/cp"), [try Executables.ferry().path, folder.file("ferry").path])
    let blind = try await ChildProcess.run(
      folder.file("ferry"), ["shell", Self.board, "--window"],
      environment: ["PATH": folder.url.path], directory: folder.url)
    #expect(blind.error.contains("ferry-window is neither beside ferry nor on the PATH"))
    #expect(blind.status != .exited(0) && blind.output.isEmpty)
  }

  @Test("the key of --key-file is that of the missions of a folder's pages")
  func keyFile() async throws {
    let folder = try TemporaryDirectory()
    _ = try await ferry("sql", "CREATE TABLE cards(id TEXT PRIMARY KEY)", at: folder)
    _ = try await ferry("track", "cards", at: folder)
    try Data("short".utf8).write(to: folder.file("key"))
    let shell = try await ferry(
      "shell", Self.board, "--grant", "missions", "--key-file", "key", "--window", at: folder)
    #expect(shell.error.contains("key contains no key"), "\(shell.error)")
  }

  @Test("the declarations describe every member of the script")
  func declarations() async throws {
    let folder = try TemporaryDirectory()
    let printed = try await ferry("shell", "--declarations", at: folder)
    #expect(printed.status == .exited(0))
    for member in ["call<", "watch<", "upload(", "ready()", "class FerryError"] {
      #expect(printed.output.contains(member), "\(member)")
    }
  }

  @Test("the address is in JSON, declared services that are not granted are listed, and it ends")
  func json() async throws {
    let folder = try TemporaryDirectory()
    let shell = try ChildProcess(
      try Executables.ferry(), ["shell", Self.board, "--no-open", "--json"], directory: folder.url)
    let line = try await shell.line { $0.contains("started") }
    struct Started: Decodable {
      let address: String
      let version: String
      let withheld: [String]
    }
    let started = try JSONDecoder().decode(Started.self, from: Data(line.utf8))
    #expect(started.address.hasPrefix("http://127.0.0.1:"))
    #expect(started.version == "1")
    #expect(started.withheld.contains("data.query"))
    shell.send(SIGTERM)
    _ = try await shell.exitStatus()
  }

  /// Starts a shell that opens a browser, with the test's programs first on the PATH.
  private func start(_ folder: TemporaryDirectory, path: String) throws -> ChildProcess {
    try ChildProcess(
      try Executables.ferry(),
      ["shell", Self.board, "--json"],
      environment: ["PATH": path, "TMPDIR": folder.file("tmp").path], directory: folder.url)
  }

  @Test("the browser gets a file that only the user can read, never the address itself")
  func opening() async throws {
    let folder = try TemporaryDirectory()
    try FileManager.default.createDirectory(
      at: folder.file("tmp"), withIntermediateDirectories: false)
    let program = folder.file("xdg-open")
    let script = """
      #!/bin/sh
      cp "$1" '\(folder.file("page").path)'
      stat -c '%a %n' "$1" "${1%/*}" > '\(folder.file("draft").path)'
      mv '\(folder.file("draft").path)' '\(folder.file("log").path)'
      """
    try Data(script.utf8).write(to: program)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program.path)
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let shell = try start(folder, path: "relative:\(folder.url.path):\(path)")
    try await eventually("the browser to open", from: shell) {
      FileManager.default.fileExists(atPath: folder.file("log").path)
    }
    let log = try String(contentsOf: folder.file("log"), encoding: .utf8)
    let lines = log.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    try #require(lines.map(\.count) == [2, 2], "\(log)")
    #expect(lines.map(\.[0]) == ["600", "700"])
    #expect(lines[0][1].hasSuffix("/open.html"))
    // The file leads to an address that opens the page once, and that no process has as an
    // argument.
    let page = try String(contentsOf: folder.file("page"), encoding: .utf8)
    let found = try #require(
      page.firstMatch(of: /url=http:\/\/(127\.0\.0\.1:(\d+))(\/-\/open\/[^"]+)"/))
    for process in try FileManager.default.contentsOfDirectory(atPath: "/proc") {
      let line = try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)
      #expect(line?.contains(found.3) != true)
    }
    let (host, port) = (String(found.1), try #require(UInt16(found.2)))
    func open() async throws -> ServiceSocket.Answer {
      try await ServiceSocket.exchange(port, "GET", String(found.3), headers: ["Host": host])
    }
    let opened = try await open()
    #expect(opened.status == 200 && opened.headers["set-cookie"] != nil)
    #expect(try await open().headers["set-cookie"] == nil)
    shell.send(SIGTERM)
    _ = try await shell.exitStatus()
    #expect(!FileManager.default.fileExists(atPath: lines[1][1]))
  }

  @Test("without a program that opens a browser, the command says so and leaves no file")
  func unopened() async throws {
    let folder = try TemporaryDirectory()
    try FileManager.default.createDirectory(
      at: folder.file("tmp"), withIntermediateDirectories: false)
    let shell = try start(folder, path: "/nonexistent")
    _ = try await shell.line { $0.contains("xdg-open is not on the PATH") }
    _ = try await shell.line { $0.contains("open the printed address yourself") }
    let left = try FileManager.default.contentsOfDirectory(atPath: folder.file("tmp").path)
    #expect(!left.contains { $0.hasPrefix("ferry-shell") })
    shell.send(SIGTERM)
    _ = try await shell.exitStatus()
  }

  @Test("the board shows its versions, a film and a conflict, and survives a broken version")
  func board() async throws {
    let pictures = try TemporaryDirectory()
    let programs = try Executables.ferry().deletingLastPathComponent()
    let run = try await ChildProcess.run(
      Project.file("Scripts/hybrid.sh"), [programs.path, pictures.url.path])
    #expect(run.status == .exited(0), "\(run.output)\(run.error)")
    for line in [
      "the page shows the cards, and has confirmed version 1",
      "the film of the mission plays from the device, 320 pixels wide",
      "the open page shows the tablet's title without another load: \"Find a white wall\"",
      "the open page still shows \"Board\"", "the next page load shows \"Board 2\"",
      "Ada's tablet wrote “Invite the whole street”",
      "the user keeps the own title: \"Invite all neighbours\"",
      "the page falls back to \"Board 2\"", "published board 3: ",
      "3 failed on ", "the server counts 1 failure of version 3",
    ] {
      #expect(run.output.contains(line), "\(line)")
    }
  }
}

import FerryTestSupport
import Foundation
import Testing

/// The example of Examples/Board in the window.
@Suite("The board in the window of `ferry shell`", .serialized, .hangLimit)
struct WindowBoardTests {
  /// A server, a device with three cards, and the folder to publish.
  private struct Stage {
    let window: WindowStage
    private let server: ChildProcess
    private let port: UInt16

    /// Writes the page's view into a table.
    private static let probe = """
      while (!document.querySelector(".card")) await new Promise((done) => setTimeout(done, 20));
      const cards = [...document.querySelectorAll("#lanes [data-lane]")].map((lane) => {
        const titles = [...lane.querySelectorAll(".card input")].map((field) => field.value);
        return `${lane.dataset.lane}: ${titles.join(", ")}`;
      });
      await ferry.call("data.write", { changes: [{ table: "sights", action: "upsert", values: {
        id: document.querySelector("h1").textContent, cards: cards.join("; "),
        error: document.getElementById("error").textContent } }] });
      """

    init() async throws {
      window = try await WindowStage()
      port = try FreePort.next()
      server = try ChildProcess(
        try Executables.ferryd(),
        [
          "serve", "--listen", "127.0.0.1:\(port)", "--data", window.programs.file("data").path,
        ])
      _ = try await server.line { $0.contains("listening on") }
      try await window.ferry("init", "--server", url, "--space", "board")
      try await window.ferry(
        "sql", "CREATE TABLE cards(id TEXT PRIMARY KEY, title TEXT, lane TEXT, position REAL)")
      try await window.ferry(
        "sql", "CREATE TABLE sights(id TEXT PRIMARY KEY, cards TEXT, error TEXT)")
      try await window.ferry("track", "cards", "sights")
      try await window.ferry(
        "sql",
        """
        INSERT INTO cards VALUES ('c1', 'Buy a film projector', 'todo', 1),
          ('c2', 'Invite the neighbours', 'doing', 2), ('c3', 'Find a wall', 'done', 3)
        """)
      let app = Project.file("Examples/Board/app")
      for name in try FileManager.default.contentsOfDirectory(atPath: app.path) {
        try FileManager.default.copyItem(
          at: app.appending(path: name), to: window.folder.file(name))
      }
      try Data(Self.probe.utf8).write(to: window.folder.file("probe.js"))
      try change(
        "index.html", "</body>", "<script type=\"module\" src=\"probe.js\"></script></body>")
    }

    private var url: String { "http://127.0.0.1:\(port)" }

    func text(_ name: String) throws -> String {
      try String(contentsOf: window.folder.file(name), encoding: .utf8)
    }

    func write(_ name: String, _ text: String) throws {
      try Data(text.utf8).write(to: window.folder.file(name))
    }

    func change(_ name: String, _ old: String, _ new: String) throws {
      let before = try text(name)
      try #require(before.contains(old), "\(name) has no \(old)")
      try write(name, before.replacingOccurrences(of: old, with: new))
    }

    /// Publishes the folder. Returns when the device has the files.
    func publish(_ version: Int, to shell: ChildProcess? = nil) async throws {
      let json = try text("ferry-bundle.json")
      try write(
        "ferry-bundle.json",
        json.replacing(/"version": "\d+"/, with: "\"version\": \"\(version)\""))
      let published = try await ChildProcess.run(
        try Executables.ferryd(),
        ["bundle", "publish", window.folder.url.path, "--space", "board", "--server", url])
      try #require(published.status == .exited(0), "\(published.error)")
      guard version > 1 else { return }
      try await eventually("version \(version) on the device", from: shell) {
        let list = try await window.ferry("bundle", "list", "--json")
        return list.split(separator: "\n").contains {
          $0.contains("\"version\":\"\(version)\"") && $0.contains("\"here\":true")
        }
      }
    }

    /// Waits until a page of the board with a heading has written what it shows.
    func sight(_ heading: String, in shell: ChildProcess) async throws -> String {
      try await eventually("the page's sight of \(heading)", from: shell) {
        let rows = try await window.ferry(
          "sql", "SELECT cards || '. ' || error AS seen FROM sights WHERE id = '\(heading)'",
          "--json")
        return rows.contains("seen") ? rows : nil
      }
    }
  }

  @Test(
    "the window shows the published board, its next version, and the last good one after broken ones"
  )
  func board() async throws {
    let stage = try await Stage()
    try await stage.publish(1)
    try await stage.window.ferry("bundle", "fetch", "board")
    let empty = try stage.window.colours()
    let shell = try ChildProcess(
      try Executables.ferry(),
      stage.window.replica + [
        "shell", "board", "--grant", "data", "--grant", "missions", "--sync", "--window", "--json",
      ], environment: stage.window.environment)
    _ = try await shell.line { Self.isEvent($0, "confirmed", 1) }
    let seen =
      "todo: Buy a film projector; doing: Invite the neighbours; done: Find a wall. "
    #expect(try await stage.sight("Board", in: shell).contains("{\"seen\":\"\(seen)\"}"))
    // Texts and borders are there, with the shades of their edges.
    try await eventually("the board's texts", from: shell) {
      try stage.window.colours() >= empty + 16
    }
    try expectSecret(shell)

    try stage.change("index.html", "<h1>Board</h1>", "<h1>Board 2</h1>")
    try await stage.publish(2)
    try await stage.window.press("ctrl+r", in: "Board")
    _ = try await shell.line { Self.isEvent($0, "confirmed", 2) }
    #expect(try await stage.sight("Board 2", in: shell).contains("{\"seen\":\"\(seen)\"}"))

    let works = try stage.text("board.js")
    for (version, script, kind) in [
      (3, "throw new Error('version 3 is broken');", "crashed"),
      (4, "export const nothing = 1;", "silent"),
      (5, "fetch('http://127.0.0.1:9/').catch(() => {});\n" + works, "violated"),
    ] {
      try stage.write("board.js", script)
      try await stage.publish(version)
      let before = shell.lineCount
      try await stage.window.press("ctrl+r", in: "Board")
      _ = try await shell.line(after: before) {
        Self.isEvent($0, "failed", version) && $0.contains(kind)
          && $0.contains("the last good version follows")
      }
      _ = try await shell.line(after: before) { Self.isEvent($0, "confirmed", 2) }
    }
    try expectSecret(shell)
    try await stage.window.press("ctrl+q", in: "Board")
    #expect(try await shell.exitStatus() == .exited(0), "\(shell.error)")
  }

  private static func isEvent(_ line: String, _ event: String, _ version: Int) -> Bool {
    line.contains("\"event\":\"\(event)\"") && line.contains("\"version\":\"\(version)\"")
  }

  /// Expects no process of this machine to have an address that opens the shell as an argument.
  private func expectSecret(_ shell: ChildProcess) throws {
    let started = try #require(
      shell.output.firstMatch(of: /"address":"(http:\/\/127\.0\.0\.1:\d+\/-\/open\/)/),
      "\(shell.output)")
    var count = 0
    for process in try FileManager.default.contentsOfDirectory(atPath: "/proc") {
      guard let line = try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)
      else { continue }
      count += line.contains("ferry-window") ? 1 : 0
      #expect(!line.contains(started.1), "\(line)")
    }
    #expect(count > 0)
  }
}

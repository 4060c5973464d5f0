import FerryTestSupport
import Foundation
import Testing

/// The pages and scripts of Documentation/shell.md, in a real browser and a real `ferry shell`.
@Suite("The documents' pages in a browser", .serialized, .hangLimit)
struct DocumentedPagesTests {
  private let document: DocumentedCode

  init() throws { document = try DocumentedCode("Documentation/shell.md") }

  /// A device with the document's table, and the document's page with a script in a browser.
  private final class Stage: Sendable {
    let device: Device
    let shell: ChildProcess
    let tab: BrowserTab
    private let server: Server
    private let bundle: Draft

    init(_ document: DocumentedCode, script: String) async throws {
      let setup = try #require(
        document.text.firstMatch(of: /ferry sql "(?<sql>.*)" && ferry track (?<table>\w+)\n/))
      server = try await Server.start()
      device = try await Device.joined(
        server.url, schema: String(setup.sql), tracking: [String(setup.table)])
      try await device.write(
        """
        INSERT INTO cards VALUES ('a', 'Buy milk', 'todo', 1), ('b', 'Call Zoë', 'done', 2),
          ('c', 'Sow beans', 'todo', 3)
        """)
      bundle = try Draft()
      try bundle.write("index.html", Array(try #require(document.blocks("html").first).utf8))
      try bundle.write("ferry-bundle.json", Array(document.blocks("json")[0].utf8))
      try bundle.write("app.js", Array(script.utf8))
      shell = try device.start("shell", bundle.path, "--grant", "data", "--no-open", "--json")
      let line = try await shell.line { $0.contains("started") }
      let started = try #require(try JSONLine.all(line).first)
      tab = try await BrowserTab.open()
      try await tab.go(to: try #require(started.text("address")))
    }

    /// Waits until the page has confirmed success.
    func confirmed() async throws {
      var seen = 0
      while true {
        let line = try await shell.line(after: seen) {
          $0.contains("\"confirmed\"") || $0.contains("silent")
        }
        if line.contains("\"confirmed\"") { return }
        seen = shell.lineCount
        // The machine is too busy for the shell's ten seconds.
        try await tab.call("Page.reload")
      }
    }

    /// Waits for the text of a call of `console.log`.
    func hasLogged(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
      try await eventually("“\(text)” in the browser's console", from: tab) {
        // A failed script logs nothing more.
        try #require(tab.faults.isEmpty, "\(tab.faults)", sourceLocation: sourceLocation)
        return tab.logged.contains(text)
      }
    }
  }

  @Test("the document's page shows the cards, adds one, and works")
  func page() async throws {
    let stage = try await Stage(document, script: document.blocks("js")[0])
    let titles = "[...document.querySelectorAll('#cards li')].map((item) => item.textContent)"
    try await stage.tab.until("\(titles).join() === 'Buy milk,Call Zoë,Sow beans'")
    try await stage.confirmed()
    _ = try await stage.tab.value(
      """
      document.querySelector("form input").value = "<b>Eat</b>";
      document.querySelector("form button").click();
      """)
    try await stage.tab.until("\(titles).join() === 'Buy milk,Call Zoë,Sow beans,<b>Eat</b>'")
    try await stage.tab.until("document.querySelector('form input').value === ''")
    let rows = try await stage.device.rows("SELECT title, lane FROM cards ORDER BY position")
    #expect(rows.last == ["<b>Eat</b>", "todo"])
    // Another program's change shows, too.
    try await stage.device.write("DELETE FROM cards WHERE id = 'b'")
    try await stage.tab.until("\(titles).join() === 'Buy milk,Sow beans,<b>Eat</b>'")
    #expect(stage.tab.faults.isEmpty, "\(stage.tab.faults)")
    let failures = stage.shell.output.split(separator: "\n").filter { $0.contains("failed") }
    #expect(failures.allSatisfy { $0.contains("silent") }, "\(stage.shell.output)")
  }

  @Test("the document's call returns rows")
  func call() async throws {
    let stage = try await Stage(document, script: document.blocks("js")[1])
    try await stage.hasLogged("2 to do: Buy milk first")
  }

  @Test("the document's cancelled call fails with the code “cancelled”")
  func cancellation() async throws {
    let stage = try await Stage(document, script: document.blocks("js")[2])
    try await stage.hasLogged("cancelled the call was cancelled")
  }

  @Test("the examples in the declarations of the bridge return rows")
  func declarations() async throws {
    let lines = try DocumentedCode("Client/Shell/Bridge/ferry.d.ts").text.split(separator: "\n")
    let examples = lines.filter { $0.hasPrefix("   *     ") }.map { $0.dropFirst(9) }
    try #require(examples.count == 2 && examples[1].hasSuffix("show(rows);"))
    let script = """
      const show = (rows) => console.log("shown", rows.length);
      \(examples[0])
      show(rows);
      \(examples[1].replacing("show(rows)", with: "{ show(rows); break; }"))
      console.log("over");
      """
    let stage = try await Stage(document, script: script.replacing("\"tasks\"", with: "\"cards\""))
    try await stage.hasLogged("over")
    #expect(stage.tab.logged == ["shown 3", "shown 3", "over"])
  }

  @Test("a wrong example is noticed")
  func wrong() async throws {
    let script = document.blocks("js")[1].replacing("\"cards\"", with: "\"card\"")
    let stage = try await Stage(document, script: script)
    _ = try await stage.shell.line { $0.contains("\"failed\"") && $0.contains("no table") }
    try await eventually("the failure in the browser", from: stage.tab) {
      stage.tab.faults.count == 1
    }
    #expect(stage.tab.logged.isEmpty)
  }

  @Test("no document has a page or a script that these tests do not run")
  func all() throws {
    var found: [String: Int] = [:]
    for path in try DocumentedCode.documents {
      for language in ["html", "js", "javascript", "ts", "css"] {
        let count = try DocumentedCode(path).blocks(language).count
        if count > 0 { found["\(path) \(language)"] = count }
      }
    }
    // `PatchPairTests` runs the script of a patch.
    #expect(
      found == [
        "Documentation/shell.md html": 1, "Documentation/shell.md js": 3,
        "Documentation/patches.md js": 1,
      ])
  }
}

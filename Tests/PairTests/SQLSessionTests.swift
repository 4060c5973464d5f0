import FerryTestSupport
import Foundation
import Testing

/// `ferry sql` without statements on a terminal.
@Suite("SQL on a terminal", .hangLimit)
struct SQLSessionTests {
  private static let prompt = "ferry> "
  private static let continuation = "...> "
  private static let enter = "\r"

  @Test("a statement of several lines runs at its semicolon, and a failed one ends nothing")
  func statements() async throws {
    let device = try Device()
    let session = try start(device)
    try await expect(session, Self.prompt)
    try await enter(session, "CREATE TABLE notes(id TEXT PRIMARY KEY,", until: Self.continuation)
    let made = try await enter(session, "body TEXT);")
    #expect(made.contains("0 rows changed"))
    let failed = try await enter(session, "SELECT * FROM nowhere;")
    #expect(failed.contains("no such table: nowhere"))
    let inserted = try await enter(session, "INSERT INTO notes VALUES ('a', 'x;y');")
    #expect(inserted.contains("1 row changed"))
    let both = try await enter(session, "SELECT id FROM notes; SELECT 40 + 2 AS answer;")
    #expect(both.contains("answer") && both.contains("42"))
    let empty = try await enter(session, "SELECT * FROM notes WHERE id = 'b';")
    #expect(empty.contains("0 rows"))
    try session.type("\u{4}")
    #expect(try await session.exitStatus() == .exited(0))
    #expect(try await device.rows("SELECT * FROM notes") == [["a", "x;y"]])
  }

  @Test("a line can be edited, and characters beyond ASCII can be typed")
  func editing() async throws {
    let device = try Device()
    let session = try start(device)
    try await expect(session, Self.prompt)
    // Ctrl-A goes to the beginning of the line.
    let edited = try await enter(session, "ELECT 40 + 2 AS answer;\u{1}S")
    #expect(edited.contains("42"))
    try await enter(session, "CREATE TABLE t AS SELECT 'Zürich 東京 🚢' AS place;")
    #expect(try await device.rows("SELECT place FROM t") == [["Zürich 東京 🚢"]])
    try session.type(".quit" + Self.enter)
    #expect(try await session.exitStatus() == .exited(0))
  }

  @Test("Ctrl-C discards a line and the lines before it, and the session goes on")
  func cancelled() async throws {
    let device = try Device()
    let session = try start(device)
    try await expect(session, Self.prompt)
    try await enter(session, "CREATE TABLE one(x);")
    var shown = session.screen.utf8.count
    try session.type("DROP TABLE one;\u{3}")
    try await expect(session, "^C", Self.prompt, after: shown)
    try await enter(session, "DROP TABLE", until: Self.continuation)
    shown = session.screen.utf8.count
    try session.type("\u{3}")
    try await expect(session, "^C", Self.prompt, after: shown)
    let rows = try await enter(session, "SELECT count(*) AS tables FROM one;")
    #expect(rows.contains("tables"))
    try session.type("\u{4}")
    #expect(try await session.exitStatus() == .exited(0))
  }

  @Test("the history is the owner's alone, and another session recalls it")
  func history() async throws {
    let device = try Device()
    let first = try start(device)
    try await expect(first, Self.prompt)
    try await enter(first, "SELECT 6 * 7 AS product;")
    // A killed session loses nothing.
    first.send(SIGKILL)
    #expect(try await first.exitStatus() == .killed(signal: SIGKILL))
    let file = device.directory.file("state/ferry/sql_history")
    #expect(try String(contentsOf: file, encoding: .utf8) == "SELECT 6 * 7 AS product;\n")
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let second = try start(device)
    try await expect(second, Self.prompt)
    // Ctrl-P recalls the entry before.
    let recalled = try await enter(second, "\u{10}")
    #expect(recalled.contains("product") && recalled.contains("42"))
    try second.type("\u{4}")
    #expect(try await second.exitStatus() == .exited(0))
  }

  @Test(".tables, .schema and .help describe the replica, and an unknown command is refused")
  func commands() async throws {
    let device = try Device()
    try await device.ferry("sql", "\(Device.notes); CREATE TABLE \"my lists\"(id TEXT PRIMARY KEY)")
    try await device.ferry("sql", "CREATE VIEW bodies AS SELECT body FROM notes")
    try await device.ferry("track", "notes")
    let session = try start(device)
    try await expect(session, Self.prompt)
    let tables = try await enter(session, ".tables")
    #expect(tables.contains("notes     table  yes"))
    #expect(tables.contains("my lists  table\n") && tables.contains("bodies    view\n"))
    #expect(!tables.contains("ferry_"))
    let schema = try await enter(session, ".schema NOTES")
    #expect(schema.contains(Device.notes + ";"))
    #expect(!schema.contains("my lists") && !schema.contains("TRIGGER"))
    #expect(try await enter(session, ".schema \"my lists\";").contains("CREATE TABLE \"my lists\""))
    #expect(try await enter(session, ".schema").contains("CREATE VIEW bodies"))
    #expect(try await enter(session, ".schema none").contains("there is no table none"))
    #expect(try await enter(session, ".help").contains(".schema [TABLE]"))
    #expect(try await enter(session, ".nothing").contains(".nothing is not a command"))
    try session.type(".quit" + Self.enter)
    #expect(try await session.exitStatus() == .exited(0))
  }

  @Test("a signal ends a session that waits for a line")
  func terminated() async throws {
    let device = try Device()
    let session = try start(device)
    try await expect(session, Self.prompt)
    session.send(SIGTERM)
    #expect(try await session.exitStatus() == .exited(128 + SIGTERM))
    #expect(FileManager.default.fileExists(atPath: device.path))
  }

  private func start(_ device: Device) throws -> TerminalProcess {
    let state = device.directory.file("state").path
    return try TerminalProcess(
      try Executables.ferry(), ["--replica", device.path, "sql"],
      environment: ["TERM": "vt100", "XDG_STATE_HOME": state, "HOME": device.directory.url.path],
      directory: device.directory.url)
  }

  /// Types a line. Returns the output until the next prompt.
  @discardableResult
  private func enter(
    _ session: TerminalProcess, _ line: String, until prompt: String = prompt
  ) async throws -> String {
    let shown = session.screen.utf8.count
    try session.type(line + Self.enter)
    return try await expect(session, "\n", prompt, after: shown)
  }

  /// Waits until the screen shows texts one after another. Returns all after the first `shown`
  /// bytes.
  @discardableResult
  private func expect(
    _ session: TerminalProcess, _ texts: String..., after shown: Int = 0
  ) async throws -> String {
    try await eventually("the screen to show \(texts)", from: session) {
      // As one character, "\r\n" would not contain "\n".
      let bytes = session.screen.utf8.dropFirst(shown).filter { $0 != UInt8(ascii: "\r") }
      let new = String(decoding: bytes, as: UTF8.self)
      var rest = new[...]
      for text in texts {
        guard let found = rest.range(of: text) else { return nil as String? }
        rest = rest[found.upperBound...]
      }
      return new
    }
  }
}

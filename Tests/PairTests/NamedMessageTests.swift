import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Messages with names of tables and columns, or words of the command line.
@Suite("Messages with names", .hangLimit)
struct NamedMessageTests {
  private func device() async throws -> Device {
    let device = try Device()
    try await device.ferry("init", "--offline", "--server", "http://127.0.0.1:1", "--space", "own")
    try await device.ferry("sql", "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
    try await device.ferry("track", "notes")
    return device
  }

  @Test("a name with quotation marks is shown as it is")
  func quoted() async throws {
    let device = try await device()
    let absent = try await device.ferry("rename", "notes", "te\"xt", "--column", "body2", exits: 1)
    #expect(absent.error.contains("has no column "), "\(absent.error)")
    #expect(!absent.error.contains("\"\""), "\(absent.error)")
    let word = try await device.ferry("sync", "\"body\"", exits: 2)
    #expect(word.error.contains("unexpected argument '\"body\"'"), "\(word.error)")
  }

  @Test("a batch on an absent table or column names it, and the columns that there are")
  func batch() async throws {
    let device = try await device()
    for (table, set, message) in [
      ("nope", "n=2", "there is no table nope"),
      (
        "notes", "typo=2",
        "the batch was not recorded\n  why: table notes has no column typo; it has id, body"
      ),
    ] {
      let result = try await device.ferry(
        "batch", table, "--where", "id = 'a'", "--set", set, exits: 1)
      #expect(result.error.contains("ferry: \(message)\n"))
    }
  }

  @Test("Ferry's own limits are Ferry's, and not errors of SQLite")
  func ownLimits() async throws {
    let device = try await device()
    for (arguments, title, reason) in [
      (
        ["sql", "CREATE TABLE ferry_x(a)"], "Ferry does not allow this statement",
        "reserved for Ferry"
      ),
      (
        ["sql", "INSERT INTO ferry_log VALUES (1)"], "Ferry does not allow this statement",
        "read-only"
      ),
      (["sql", "BEGIN"], "Ferry does not allow this statement", "leave out BEGIN"),
      (
        ["rename", "notes", "ferry_q"], "Ferry does not allow this statement", "reserved for Ferry"
      ),
      (
        ["rename", "notes", "x", "--column", "typo"], "this change cannot be recorded",
        "no column typo"
      ),
    ] {
      let result = try await ChildProcess.run(
        try Executables.ferry(), ["--replica", device.path] + arguments)
      #expect(result.status == .exited(1), "\(arguments): \(result.error)")
      #expect(result.error.contains("ferry: \(title)\n"), "\(arguments): \(result.error)")
      #expect(result.error.contains(reason), "\(arguments): \(result.error)")
    }
  }

  @Test("the undo of a row that its user deleted names the delete, and no conflict")
  func deletedByOneself() async throws {
    let device = try await device()
    try await device.ferry("sql", "INSERT INTO notes VALUES ('a', 'x')")
    try await device.ferry("sql", "DELETE FROM notes")
    let listed = try JSONLine.all(try await device.ferry("--json", "history").output)
    let deletion = try #require(listed.first?.text("operation"))
    let insert = try #require(listed.last?.text("operation"))
    let result = try await device.ferry("undo", insert, exits: 1)
    #expect(result.error.contains("undo the delete first, operation \(deletion)"))
  }

  @Test("help has only the characters of the locale")
  func help() async throws {
    for arguments in [
      ["track", "--help"], ["mission", "download", "--help"], ["batch", "--help"],
    ] {
      let help = try await ChildProcess.run(
        try Executables.ferry(), arguments, environment: ["LC_ALL": "C"])
      #expect(help.status == .exited(0))
      #expect(help.output.utf8.allSatisfy { $0 < 0x80 }, "\(help.output)")
    }
  }

  @Test("an import names the user's table, and the columns that it has")
  func imported() async throws {
    let device = try await device()
    let file = device.directory.file("rows.json")
    try Data(#"[{"id": "a", "typo": 1}]"#.utf8).write(to: file)
    let result = try await device.ferry("import", "notes", file.path, exits: 1)
    #expect(result.error.contains("why: table notes has no column typo; it has id, body"))
  }
}

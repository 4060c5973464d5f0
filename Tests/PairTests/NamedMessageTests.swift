import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Messages that repeat names of tables and columns, or words of the command line.
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
    for (table, set, reason) in [
      ("nope", "n=2", "there is no table nope"),
      ("notes", "typo=2", "table notes has no column typo; it has id, body"),
    ] {
      let result = try await device.ferry(
        "batch", table, "--where", "id = 'a'", "--set", set, exits: 1)
      #expect(result.error.contains("ferry: the batch was not recorded\n  why: \(reason)\n"))
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

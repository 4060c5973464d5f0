import Ferry
import FerryTestSupport
import Testing

/// Operations named by the beginning of their identifier on a command line.
@Suite("Short operations", .hangLimit)
struct OperationArgumentTests {
  @Test("lists show short forms that undo accepts, and --json has whole identifiers")
  func shortForms() async throws {
    let device = try await device()
    let whole = try JSONLine.all(try await device.ferry("history", "--json").output)
      .compactMap { $0.text("operation") }
    #expect(whole.count == 3 && whole.allSatisfy { $0.count == 36 })
    let listed = try await device.ferry("history").output.split(separator: "\n").dropFirst(2)
    let short = listed.compactMap { $0.split(separator: " ").first.map(String.init) }
    #expect(short.count == 3 && Set(short).count == 3)
    for (short, whole) in zip(short, whole) {
      #expect(whole.hasPrefix(short) && short.count < 36, "\(short) of \(whole)")
    }
    let pending = try await device.ferry("pending").output
    #expect(short.allSatisfy { pending.contains($0) })
    #expect(whole.allSatisfy { !pending.contains($0) })
    let undone = try await device.ferry("undo", short[0], "--json")
    #expect(try JSONLine.all(undone.output).last?.text("operation") == whole[0])
    #expect(try await device.rows("SELECT body FROM notes ORDER BY id") == [["one"], ["two"]])
  }

  @Test("a beginning of several operations is refused with the candidates")
  func ambiguous() async throws {
    let device = try await device()
    let whole = try JSONLine.all(try await device.ferry("history", "--json").output)
      .compactMap { $0.text("operation") }
    // The first four digits of a time change every 50 days.
    let beginning = String(try #require(whole.first).prefix(4))
    let refused = try await device.ferry("undo", beginning, exits: 2)
    #expect(refused.error.contains("several operations begin with \(beginning)"))
    #expect(refused.error.contains("(insert notes b)"))
    #expect(refused.error.contains("(update notes a)"))
    #expect(try await device.status().pending == 3, "nothing was undone")
    try await device.ferry("batch", "notes", "--where", "n = 2", "--set", "n=3")
    let batch = try await device.ferry("undo", beginning, exits: 2)
    #expect(batch.error.contains("(batch notes set where n = 2)"), "\(batch.error)")
  }

  @Test("a beginning of no operation, and text that begins none, are refused")
  func absent() async throws {
    let device = try await device()
    let absent = try await device.ferry("undo", "ffffffff", exits: 1)
    #expect(absent.error.contains("this device has no operation ffffffff"))
    for text in ["019", "zzzz", "0198c2f01"] {
      let wrong = try await device.ferry("undo", text, exits: 2)
      #expect(wrong.error.contains("'\(text)' is not an operation"), "\(text)")
    }
  }

  private func device() async throws -> Device {
    let device = try Device()
    try await device.ferry("sql", Device.notes)
    try await device.ferry("track", "notes")
    for sql in [
      "INSERT INTO notes VALUES ('a', 'one', 1)", "INSERT INTO notes VALUES ('b', 'two', 2)",
      "UPDATE notes SET body = 'changed' WHERE id = 'a'",
    ] {
      try await device.write(sql)
    }
    return device
  }
}

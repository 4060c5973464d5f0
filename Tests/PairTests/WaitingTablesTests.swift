import Ferry
import FerryTestSupport
import Foundation
import Testing

@testable import FerryCommand

/// The message about pulled changes without a tracked table.
@Suite("Waiting changes", .hangLimit)
struct WaitingTablesTests {
  @Test("each table is named with the command that lets its changes be applied")
  func commands() {
    let tables = WaitingTables(
      waitedFor: ["late", "my notes", "here", "Narrow"], tracked: ["narrow", "other"],
      existing: ["HERE", "narrow", "other"])
    #expect(tables.absent == ["late", "my notes"])
    #expect(tables.untracked == ["here"])
    #expect(tables.narrow == ["Narrow"])
    let lines = tables.lines(changes: 3)
    #expect(lines.first?.hasPrefix("ferry: 3 changes wait for") == true)
    #expect(lines.dropFirst().first?.contains("`ferry track --create late 'my notes'`") == true)
    #expect(lines.contains { $0.contains("`ferry track here`") })
    #expect(lines.contains { $0.contains("columns of Narrow") })
    #expect(lines.count == 4)
  }

  @Test("one change of one table is in the singular, and only its command is named")
  func single() {
    let lines = WaitingTables(waitedFor: ["notes"], tracked: [], existing: []).lines(changes: 1)
    #expect(lines.count == 2)
    #expect(lines.first?.contains("1 change waits for") == true)
  }

  @Test("the message about 200,000 tables names some of them, and commands that fit into a line")
  func many() {
    let names = (0..<200_000).map { Name("t\($0)") }
    let absent = WaitingTables(waitedFor: names, tracked: [], existing: []).lines(changes: 200_000)
    #expect(absent.count == 2)
    #expect(absent.last?.contains("t9 and 199,990 more: `ferry track --create --all`") == true)
    let untracked = WaitingTables(waitedFor: names, tracked: [], existing: names)
    let narrow = WaitingTables(waitedFor: names, tracked: names, existing: names)
    #expect(narrow.lines(changes: 1).last?.contains("199,990 more tables") == true)
    for lines in [absent, untracked.lines(changes: 1), narrow.lines(changes: 1)] {
      #expect(lines.reduce(0) { $0 + $1.utf8.count } < 4_000)
    }
  }

  @Test("a table with a name that drives a terminal is escaped")
  func escaped() {
    let lines = WaitingTables(waitedFor: ["a\u{1B}[31m"], tracked: [], existing: [])
      .lines(changes: 1)
    #expect(lines.allSatisfy { !$0.contains("\u{1B}") })
  }

  @Test(
    "the suggested lines name hostile tables byte for byte in real shells, or not at all",
    arguments: ["sh", "bash"])
  func shells(_ shell: String) async throws {
    var samples = NameSamples(seed: 9)
    let names =
      ["-h\u{600}'; touch owned; '", "a`touch owned`", "a'; touch owned; '"].map { Name($0) }
      + (0..<60).map { _ in Name(samples.name()) }
    for name in names {
      let tables = WaitingTables(waitedFor: [name, "other"], tracked: [], existing: ["other"])
      for line in CommandHint.lines(tables.lines(changes: 1), in: "family").dropFirst() {
        let command = try #require(line.split(separator: "`").dropFirst().first)
        let directory = try TemporaryDirectory()
        let script = directory.file("script")
        try Data("ferry() { printf '%s\\0' \"$@\"; }\n\(command)\n".utf8).write(to: script)
        let run = try await ChildProcess.run(
          URL(filePath: "/usr/bin/env"), [shell, script.path], directory: directory.url)
        let words = run.output.utf8.split(separator: 0).map {
          Name(String(decoding: $0, as: UTF8.self))
        }
        #expect(run.status == .exited(0) && run.error.isEmpty, "\(command): \(run.error)")
        #expect(words.first == "track", "\(command)")
        let last = words.last { $0 != "--in" && $0 != "family" }
        #expect([name, "TABLE", "other"].contains(last), "\(command)")
        #expect(
          try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["script"])
      }
    }
  }

  @Test("a table that exists and is not tracked, and a missing column, are reported by a sync")
  func process() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(server.url)
    try await one.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await one.exchange()
    let two = try Device()
    try await two.ferry("sql", "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
    try await two.ferry("init", "--server", server.url, "--space", "demo")
    #expect(try await two.ferry("sync").error.contains("`ferry track notes`"))
    try await two.ferry("track", "notes")
    #expect(try await two.ferry("sync").error.contains("columns of notes"))
    try await two.ferry("sql", "ALTER TABLE notes ADD COLUMN n INTEGER")
    #expect(try await two.ferry("sync").error.isEmpty)
    try await expectEqual([one, two])
  }
}

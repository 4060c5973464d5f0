import Ferry
import FerryTestSupport
import Foundation
import Testing

/// The messages about entries named by a user, and about answers that do not fit them.
@Suite("Messages about named entries", .hangLimit)
struct EntryMessageTests {
  private func device() async throws -> Device {
    let device = try Device()
    try await device.ferry("init", "--offline", "--server", "http://127.0.0.1:1", "--space", "own")
    try await device.ferry("sql", "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
    try await device.ferry("track", "notes")
    return device
  }

  @Test("a message names the missing entry, and the command that lists the entries")
  func missing() async throws {
    let device = try await device()
    for (command, event, next) in [
      (["resolve", "9", "--keep", "local"], "there is no conflict 9", "ferry conflicts"),
      (["undo", "0199c82c"], "this device has no operation 0199c82c", "ferry history"),
      (["quarantine", "show", "4"], "the quarantine has no entry 4", "ferry quarantine list"),
      (["quarantine", "discard", "4"], "the quarantine has no entry 4", "ferry quarantine list"),
      (["retry", "notes", "a"], "notes a has no failed change", "ferry uploads"),
      (["history", "--in", "x"], "this file has not joined the space 'x'", "ferry join x"),
      (["batch", "nope", "--where", "n = 1", "--set", "n=2"], "there is no table nope", ".tables"),
    ] {
      let result = try await ChildProcess.run(
        try Executables.ferry(), ["--replica", device.path] + command,
        directory: device.directory.url)
      #expect(result.status == .exited(1), "\(command)")
      let lines = result.error.split(separator: "\n")
      #expect(lines.first == "ferry: \(event)", "\(command)")
      #expect(lines.last?.hasPrefix("  next: ") == true && lines.last?.contains(next) == true)
    }
  }

  @Test("an answer without a value for the conflict's column names the column, and changes nothing")
  func unfitting() async throws {
    let pair = try await Pair.make(
      schema: "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, n INTEGER)", tracking: ["notes"])
    let (one, two) = (pair.one, pair.two)
    try await one.write("INSERT INTO notes VALUES ('a', 'first', 1)")
    for device in [one, two] { try await device.exchange() }
    try await one.write("UPDATE notes SET body = 'earlier'")
    try await two.write("UPDATE notes SET body = 'later'")
    for device in [one, two, one] { try await device.exchange() }
    let listed = try JSONLine.all(try await one.ferry("conflicts", "--json").output)
    let number = try #require(listed.first?.number("id"))
    for answer in ["n=7", "bodyy=x"] {
      let result = try await one.ferry("resolve", "\(number)", "--set", answer, exits: 1)
      let lines = result.error.split(separator: "\n")
      #expect(lines.first == "ferry: this answer is not possible")
      #expect(lines.contains { $0.contains("no value for column body, which conflict \(number)") })
      #expect(lines.last == "  next: add one with --set")
    }
    let unknown = try await one.ferry(
      "resolve", "\(number)", "--set", "body=x", "--set", "typo=1", exits: 1)
    #expect(unknown.error.contains("table notes has no column typo; it has id, body, n"))
    #expect(try await one.rows("SELECT * FROM notes") == [["a", "later", 1]])
    await #expect(throws: ReplicaError.self) {
      try await one.open().resolve(Int64(number), .set([Column("n", .integer(7))]))
    }
  }
}

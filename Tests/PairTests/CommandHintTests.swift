import Ferry
import FerryTestSupport
import Testing

@testable import FerryCommand

/// Commands in hints, for a space other than the file's first one.
@Suite("Hints of a joined space", .hangLimit)
struct CommandHintTests {
  @Test(
    "a command names the joined space",
    arguments: [
      ("run `ferry retry TABLE ID`", "run `ferry retry TABLE ID --in family`"),
      ("`ferry sync` again", "`ferry sync` again"),
      ("`ferry log --in other`", "`ferry log --in other`"),
      ("`ferry`, ferry log", "`ferry`, ferry log"),
      ("an odd ` sign and `ferry log`", "an odd ` sign and `ferry log`"),
      (
        "run `ferry init --server URL --space NAME --token TOKEN`",
        "run `ferry join family --server URL --token TOKEN`"
      ),
      ("set it with `ferry init --server URL`", "set it with `ferry join family --server URL`"),
      ("`ferry init --space`", "`ferry join family`"),
      ("create it with `ferry init`", "create it with `ferry init`"),
      ("see `ferry batch --help`", "see `ferry batch --help`"),
      ("`ferry track -- -x`", "`ferry track --in family -- -x`"),
      ("`ferry untrack 'a -- b'`", "`ferry untrack --in family 'a -- b'`"),
    ])
  func named(_ line: String, _ expected: String) {
    #expect(CommandHint.lines([line], in: "family") == [expected])
    #expect(CommandHint.lines([line], in: nil) == [line])
  }

  @Test("a failed command names the joined space in its next step")
  func failedCommand() async throws {
    let device = try Device()
    let replica = try await Replica.open(
      device.path, server: "http://127.0.0.1:1", space: "own")
    await replica.close()
    try await device.ferry("join", "family")
    let first = try await device.ferry("undo", "some", exits: 2)
    #expect(first.error.contains("`ferry history` lists"), "\(first.error)")
    let joined = try await device.ferry("undo", "some", "--in", "family", exits: 2)
    #expect(joined.error.contains("`ferry history --in family` lists"), "\(joined.error)")
    let json = try await device.ferry("undo", "some", "--in", "family", "--json", exits: 2)
    #expect(json.output.contains("`ferry history --in family` lists"), "\(json.output)")
  }
}

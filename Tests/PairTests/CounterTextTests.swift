import Ferry
import FerryTestSupport
import Testing

/// Counters and counts as commands write them.
@Suite(.hangLimit)
struct CounterTextTests {
  /// A pair with a counter, and records a and b on both devices.
  private func pair() async throws -> Pair {
    let pair = try await Pair.make()
    let rule = #"{"tables":{"notes":{"columns":{"n":"counter","body":{"type":"text"}}}}}"#
    try await pair.one.open().applySchema(try SpaceSchema(json: rule))
    try await pair.one.exchange()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'x', 100), ('b', 'x', 5)")
    for device in [pair.one, pair.two] { try await device.exchange() }
    return pair
  }

  @Test("a counter is listed as its value, or as the difference if the former value is not known")
  func differences() async throws {
    let pair = try await pair()
    try await pair.one.write("UPDATE notes SET n = n - 11, body = X'05' WHERE id = 'b'")
    let pending = try await pair.one.ferry("pending")
    #expect(pending.output.contains("n=-6"), "\(pending.output)")
    try await pair.one.exchange(exits: 4)
    let refused = try await pair.one.ferry("quarantine", "show", "1")
    #expect(refused.output.contains("n by -11"), "\(refused.output)")
    try await pair.two.write("DELETE FROM notes WHERE id = 'a'")
    try await pair.two.exchange()
    try await pair.one.write("UPDATE notes SET n = n - 11 WHERE id = 'a'")
    try await pair.one.exchange(exits: 4)
    let listed = try await pair.one.ferry("conflicts")
    #expect(listed.output.contains("by -11"), "\(listed.output)")
    let log = try await pair.one.ferry("log")
    #expect(log.output.contains("notes a n: 'by -11' of this device"), "\(log.output)")
    let json = try JSONLine.all(try await pair.one.ferry("--json", "conflicts").output)
    #expect(json.contains { $0.number("lost") == -11 })
  }

  @Test("the log and a comparison write counts with separators")
  func separators() async throws {
    let pair = try await pair()
    try await pair.one.write(Sample.notes(1_234, "note"))
    for device in [pair.one, pair.two] { try await device.exchange() }
    for (device, text) in [(pair.one, "1,234 pushed"), (pair.two, "1,234 pulled")] {
      let log = try await device.ferry("log")
      #expect(log.output.contains(text), "\(log.output)")
    }
    let verified = try await pair.two.ferry("verify")
    #expect(verified.output == "1,236 rows of 1 table at 1,237: equal\n")
    #expect(try await pair.two.ferry("log").output.contains("at 1,237: equal"))
  }
}

import Ferry
import FerryTestSupport
import Foundation
import Testing

/// A refusal gives a device another name; earlier writes still belong to it.
@Suite(.hangLimit)
struct FormerNameTests {
  private static let schema = #"{"tables":{"notes":{"columns":{"body":"ask"},"unique":[["n"]]}}}"#

  /// Returns two devices with notes a and b; the second has edited the body of both offline.
  private func pair(_ kind: StoreKind) async throws -> Pair {
    let pair = try await Pair.make(kind)
    try await pair.one.open().applySchema(try SpaceSchema(json: Self.schema))
    try await pair.two.exchange()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'x', 1), ('b', 'x', 2)")
    for device in [pair.one, pair.two] { try await device.exchange() }
    return pair
  }

  /// Writes a duplicate of a unique value, so the device takes another name.
  private func rename(_ device: Device) async throws {
    let before = try await device.status().device
    try await device.write("INSERT INTO notes VALUES ('refused', 'x', 1)")
    try await device.exchange(exits: 4)
    try await device.ferry("quarantine", "discard", "1")
    #expect(try await device.status().device != before)
  }

  @Test("a device answers a question from under its former name as its own")
  func answer() async throws {
    let pair = try await pair(.embedded)
    try await pair.one.write("UPDATE notes SET body = 'theirs' WHERE id = 'a'")
    try await pair.two.write("UPDATE notes SET body = 'mine' WHERE id = 'a'")
    try await pair.one.exchange()
    let asked = try await pair.two.ferry("sync", exits: 4).output
    #expect(asked.contains("1 conflict to decide") && !asked.contains("resolved"), "\(asked)")
    try await rename(pair.two)
    let question = try #require(try await pair.two.open().conflicts(openOnly: true).first)
    #expect(question.isLosersOwn && !question.isWinnersOwn)
    #expect(try await pair.two.ferry("conflicts").output.contains("this device"))
    try await pair.two.ferry("resolve", "\(question.number)", "--keep", "local")
    for device in [pair.two, pair.one] { try await device.exchange() }
    #expect(try await pair.one.value("SELECT body FROM notes WHERE id = 'a'") == "mine")
    try await expectEqual([pair.one, pair.two])
  }

  @Test(
    "a device is notified of a loss after it has changed its name", arguments: StoreKind.allCases)
  func laterLoss(_ kind: StoreKind) async throws {
    let pair = try await pair(kind)
    // The second's write is in force at first; then it takes another name.
    try await pair.two.write("UPDATE notes SET n = 20 WHERE id = 'b'")
    try await pair.two.exchange()
    try await pair.one.write("UPDATE notes SET n = 30 WHERE id = 'b'")
    try await rename(pair.two)
    try await pair.one.exchange()
    try await pair.two.exchange()
    let kept = try await pair.two.open().conflicts()
    #expect(kept.filter(\.isLosersOwn).map(\.conflict.lost) == [20])
    // A copy that continues under the former name writes other values.
    #expect(kept.filter(\.isWinnersOwn).isEmpty)
    try await expectEqual([pair.one, pair.two])
  }
}

import Ferry
import FerryTestSupport
import Foundation
import Testing

/// A device that overrules another one's values with a reason, as a mirror does for its database.
@Suite(.hangLimit)
struct OverruledTests {
  @Test(
    "the author of an overruled record finds the values and the reason, and sends others",
    arguments: StoreKind.allCases)
  func record(_ kind: StoreKind) async throws {
    let pair = try await Pair.make(kind)
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'mine', 1)")
    for device in [pair.one, pair.two] { try await device.exchange() }
    let reason = "n violates check constraint \"n_min\""
    try await pair.two.open().write(overruling: reason) {
      _ = try $0.execute("UPDATE notes SET n = 5 WHERE id = 'a'")
    }
    try await pair.two.exchange()
    try await pair.one.exchange(exits: 4)
    try await pair.one.exchange(exits: 4)
    let listed = try JSONLine.all(
      try await pair.one.ferry("quarantine", "list", "--json").output)
    #expect(listed.map { $0.text("code") } == ["overruled"])
    #expect(listed.map { $0.text("detail") } == [reason])
    let entry = try #require(try await pair.one.open().quarantine.entries().first)
    #expect(entry.operations.map(\.columns) == [[Column("n", 1)]])
    #expect(try await pair.one.open().conflicts().isEmpty)
    #expect(try await pair.two.open().quarantine.entries().isEmpty)
    #expect(try await pair.one.rows() == [["a", "mine", 5]])
    try await pair.one.ferry("quarantine", "edit", "1", "--set", "n=7")
    for device in [pair.one, pair.two] { try await device.exchange() }
    #expect(try await pair.two.rows() == [["a", "mine", 7]])
    try await expectEqual([pair.one, pair.two])
  }

  @Test("an overruled insert and an overruled delete can be sent again, and be discarded")
  func existence() async throws {
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'mine', 1), ('b', 'theirs', 2)")
    for device in [pair.one, pair.two] { try await device.exchange() }
    try await pair.one.write("DELETE FROM notes WHERE id = 'b'")
    for device in [pair.one, pair.two] { try await device.exchange() }
    try await pair.two.open().write(overruling: "no") {
      _ = try $0.execute("DELETE FROM notes WHERE id = 'a'")
      _ = try $0.execute("INSERT INTO notes VALUES ('b', 'theirs', 2)")
    }
    try await pair.two.exchange()
    try await pair.one.exchange(exits: 4)
    let entries = try await pair.one.open().quarantine.entries()
    #expect(entries.flatMap(\.operations).map(\.kind) == [.insert, .delete])
    #expect(entries.flatMap(\.operations).map(\.key.record) == ["a", "b"])
    #expect(try await pair.one.rows() == [["b", "theirs", 2]])
    try await pair.one.ferry("quarantine", "retry", "1")
    try await pair.one.ferry("quarantine", "discard", "2")
    for device in [pair.one, pair.two] { try await device.exchange() }
    #expect(try await pair.two.rows() == [["a", "mine", 1], ["b", "theirs", 2]])
    try await expectEqual([pair.one, pair.two])
  }
}

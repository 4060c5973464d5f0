import Ferry
import FerryTestSupport
import Testing

/// Devices whose cursor is before the server's remaining history.
@Suite(.hangLimit)
struct RetentionTests {
  @Test(
    "a device absent for longer than the retention pulls from scratch, and keeps its writes",
    arguments: StoreKind.allCases)
  func away(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind)
    let one = try await Device.joined(server.url)
    let two = try await Device.joined(server.url)
    try await one.write("INSERT INTO notes VALUES ('a', 'a', 1), ('b', 'b', 1), ('c', 'c', 1)")
    for device in [one, two] { try await device.exchange() }
    try await two.write("UPDATE notes SET body = 'mine' WHERE id = 'a'")
    try await two.write("INSERT INTO notes VALUES ('d', 'd', 2)")

    try await one.write("DELETE FROM notes WHERE id = 'b'")
    try await one.write("UPDATE notes SET body = 'later' WHERE id = 'c'")
    try await one.exchange()
    let pruned = try await server.ferryd("space", "prune", Device.space, "--older-than", "0s")
    #expect(pruned.status == .exited(0), "\(pruned.error)")
    try await one.write("INSERT INTO notes VALUES ('e', 'e', 3)")
    try await one.exchange()

    try await expectSettled([two, one], server, operations: 8)
    #expect(
      try await two.rows() == [
        ["a", "mine", 1], ["c", "later", 1], ["d", "d", 2], ["e", "e", 3],
      ])
  }
}

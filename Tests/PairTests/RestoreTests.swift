import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Servers and devices restored from a backup repair themselves at the next sync.
@Suite(.hangLimit)
struct RestoreTests {
  /// The state of the history before the devices come back.
  enum Afterwards: CaseIterable {
    case nothing, grows, growsAndIsPruned
  }

  @Test(
    "a server restored from yesterday's copy receives again the operations of its devices",
    arguments: StoreKind.allCases, Afterwards.allCases)
  func restoredServer(_ kind: StoreKind, _ afterwards: Afterwards) async throws {
    let server = try await Server.start(kind)
    let one = try await Device.joined(server.url)
    let two = try await Device.joined(server.url)
    try await one.write("INSERT INTO notes VALUES ('a', 'a', 1), ('b', 'b', 1), ('c', 'c', 1)")
    for device in [one, two, one] { try await device.exchange() }
    let copy = try await server.backUp()

    try await one.write("UPDATE notes SET body = 'later' WHERE id = 'a'")
    try await two.write("DELETE FROM notes WHERE id = 'b'")
    try await two.write("INSERT INTO notes VALUES ('d', 'd', 2)")
    let late = try await Device.joined(server.url)
    try await late.write("INSERT INTO notes VALUES ('e', 'e', 3)")
    for device in [one, two, late, one, two] { try await device.exchange() }
    // Confirmed, but not behind the cursor: another device's change is between.
    try await late.write("INSERT INTO notes VALUES ('f', 'f', 3)")
    try await late.exchange("push")
    let before = try await late.rows()

    try await server.restore(copy)
    if afterwards != .nothing {
      // The history grows past every cursor of a device: only the anchor shows the difference.
      let stranger = try await Device.joined(server.url)
      try await stranger.write(Sample.notes(40, "x"))
      try await stranger.write("DELETE FROM notes WHERE id LIKE 'x-%'")
      try await stranger.exchange()
    }
    if afterwards == .growsAndIsPruned {
      // Past every anchor as well: only the timeline of the anchor shows it.
      let pruned = try await server.ferryd("space", "prune", Device.space, "--older-than", "0s")
      #expect(pruned.status == .exited(0), "\(pruned.error)")
    }
    for device in [one, two, late, one, two, late] { try await device.exchange() }
    #expect(try await one.rows() == before)
    try await expectEqual([one, two, late])
    for device in [one, two, late] {
      #expect(try await device.status().pending == 0)
      #expect(try await device.status().lastRecovery != nil)
    }
    let fresh = try await Device.joined(server.url)
    try await fresh.exchange()
    #expect(try await fresh.rows() == before)
  }

  @Test(
    "lost rows that look like deleted ones are removed, and stay in the log",
    arguments: StoreKind.allCases)
  func lostAndExpired(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind)
    let one = try await Device.joined(server.url)
    let two = try await Device.joined(server.url)
    try await one.write("INSERT INTO notes VALUES ('a', 'kept', 1), ('b', 'deleted', 1)")
    for device in [one, two] { try await device.exchange() }
    let copy = try await server.backUp()
    // The author never returns.
    try await one.write("INSERT INTO notes VALUES ('c', 'lost', 1)")
    for device in [one, two] { try await device.exchange() }
    try await server.restore(copy)
    let stranger = try await Device.joined(server.url)
    try await stranger.write(Sample.notes(10, "x"))
    try await stranger.exchange()
    try await stranger.write("DELETE FROM notes WHERE id = 'b' OR id LIKE 'x-%'")
    try await stranger.exchange()
    let pruned = try await server.ferryd("space", "prune", Device.space, "--older-than", "0s")
    #expect(pruned.status == .exited(0), "\(pruned.error)")
    try await two.write("UPDATE notes SET body = 'mine' WHERE id = 'a'")
    for device in [two, stranger] { try await device.exchange() }
    #expect(try await two.rows() == [["a", "mine", 1]])
    try await expectEqual([two, stranger])
    let log = try await two.ferry("log").output
    #expect(
      log.contains(#"the server does not have notes/c any more; here it held {"body":"lost""#))
    #expect(log.contains("the server does not have notes/b any more"))
    #expect(try await two.status().lastRecovery?.detail.contains("2 records") == true)
  }

  @Test("a server that lost everything is filled again by its devices")
  func emptyServer() async throws {
    let server = try await Server.start()
    let nothing = try await server.backUp()
    let one = try await Device.joined(server.url)
    let two = try await Device.joined(server.url)
    try await one.write("INSERT INTO notes VALUES ('a', 'a', 1), ('b', 'b', 1)")
    for device in [one, two, one] { try await device.exchange() }
    // The author's concurrent writes to a record are later than the row re-uploaded by the other.
    try await one.write("UPDATE notes SET body = 'mine' WHERE id = 'a'")
    try await server.restore(nothing)
    let refused = try await one.ferry("sync", exits: 1)
    #expect(refused.error.contains("ferryd space create"))
    let made = try await server.ferryd("space", "create", Device.space)
    #expect(made.status == .exited(0), "\(made.error)")
    for device in [two, one, two, one] { try await device.exchange() }
    #expect(try await one.rows() == [["a", "mine", 1], ["b", "b", 1]])
    try await expectEqual([one, two])
  }

  @Test(
    "a server restored from one copy repeatedly receives everything again, under any policy",
    arguments: ["ask", "text-merge", "server-wins"])
  func restoredAgain(_ policy: String) async throws {
    let server = try await Server.start()
    let one = try await Device.joined(server.url)
    let two = try await Device.joined(server.url)
    try await one.open().applySchema(
      SpaceSchema(json: #"{"tables":{"notes":{"columns":{"body":"\#(policy)"}}}}"#))
    try await one.write("INSERT INTO notes VALUES ('0', 'x', 1)")
    for device in [one, two] { try await device.exchange() }
    let copy = try await server.backUp()
    try await one.write("INSERT INTO notes VALUES ('X', 'x', 1)")
    for device in [one, two] { try await device.exchange() }
    try await two.write("UPDATE notes SET body = 'p' WHERE id = 'X'")
    for round in 1...3 {
      try await server.restore(copy)
      let name = try await two.status().device
      let report = try await two.exchange()
      #expect(report.buffered == 0 && report.left == 0)
      #expect(try await two.status().pending == 0)
      try await two.write("INSERT INTO notes VALUES ('b\(round)', 'new', 1)")
      try await two.exchange()
      let renamed = try await two.status().device
      // Once for each copy, not with each sync.
      try await two.exchange()
      #expect(try await two.status().device == renamed, "from \(name)")
    }
    // The operations seen by the author of the edit are pruned: users may be asked about it.
    for device in [one, two, one] { try await device.open().sync() }
    try await expectEqual([one, two])
    #expect(try await one.count() == 5)
    let lost = try await two.open().conflicts().map(\.conflict.lost)
    #expect(
      try await one.value("SELECT body FROM notes WHERE id = 'X'") == "p" || lost.contains("p"))
  }

  @Test("a replica restored from last week's copy takes a new identifier and lacks nothing")
  func restoredReplica() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(server.url)
    try await one.write("INSERT INTO notes VALUES ('a', 'a', 1)")
    try await one.exchange()
    let old = try await one.status().device
    let copy = one.directory.file("copy.db").path
    // The log goes with the last connection, which may close meanwhile; the file has all then.
    let log = try? Data(contentsOf: URL(filePath: one.path + "-wal"))
    try FileManager.default.copyItem(atPath: one.path, toPath: copy)
    try log?.write(to: URL(filePath: copy + "-wal"))
    let files = log == nil ? [""] : ["", "-wal"]
    try await one.write("INSERT INTO notes VALUES ('b', 'b', 1)")
    try await one.write("DELETE FROM notes WHERE id = 'a'")
    try await one.exchange()

    for suffix in ["", "-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: one.path + suffix)
    }
    for suffix in files {
      try FileManager.default.copyItem(atPath: copy + suffix, toPath: one.path + suffix)
    }
    try await one.write("INSERT INTO notes VALUES ('c', 'c', 1)")
    try await one.exchange("pull")
    // The first response shows it.
    #expect(try await one.status().device != old)
    #expect(try await one.status().lastRecovery?.event == "identity")
    try await one.exchange()
    #expect(try await one.rows("SELECT id FROM notes ORDER BY id") == [["b"], ["c"]])
    #expect(try await server.head() == 4)
  }
}

extension Server {
  /// Copies the server's whole data, while it runs (PostgreSQL) or is stopped.
  func backUp() async throws -> String {
    let copy = directory.file("copy-\(UUID().uuidString)").path
    if let database {
      try await Self.run(["pg_dump", "--format=custom", "--file", copy, database])
    } else {
      try await stop()
      try FileManager.default.copyItem(atPath: directory.file("data").path, toPath: copy)
      try await start()
    }
    return copy
  }

  /// Goes back to a copy.
  func restore(_ copy: String) async throws {
    try await stop()
    if let database {
      try await Self.run(["pg_restore", "--clean", "--if-exists", "--dbname", database, copy])
    } else {
      let data = directory.file("data").path
      try FileManager.default.removeItem(atPath: data)
      try FileManager.default.copyItem(atPath: copy, toPath: data)
    }
    try await start()
  }

  private static func run(_ command: [String]) async throws {
    let finished = try await ChildProcess.run(
      URL(filePath: "/usr/bin/env"), command)
    try #require(finished.status == .exited(0), "\(finished.error)")
  }
}

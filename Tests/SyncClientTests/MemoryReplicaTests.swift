import FerryNetworking
import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerrySyncClient

/// Replicas in memory, with all abilities of files.
@Suite("Replicas in memory", .hangLimit)
struct MemoryReplicaTests {
  private func open(_ server: ScriptedServer, token: TokenSource = .none) async throws -> Replica {
    let replica = try await Replica.open(
      ":memory:", server: "http://127.0.0.1:1", space: "demo", token: token, transport: server)
    try await replica.write { database in
      try database.execute("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
    }
    try await replica.track("notes")
    return replica
  }

  @Test("writes are recorded and sent, live queries follow them, and two replicas share nothing")
  func writes() async throws {
    let server = ScriptedServer()
    let (replica, other) = (try await open(server), try await open(server))
    let bodies = replica.observe { try $0.query("SELECT body FROM notes ORDER BY id") }
    var rows = bodies.makeAsyncIterator()
    #expect(try await rows.next()?.isEmpty == true)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'milk')") }
    #expect(try await rows.next()?.map { $0["body"] } == ["milk"])
    #expect(try await replica.operations.pending().count == 1)
    #expect(try await other.operations.pending().isEmpty)
    // Two syncs wait for each other, as those of two processes do.
    async let one = replica.sync()
    async let two = replica.sync()
    #expect(try await one.pushed + two.pushed == 1)
    #expect(server.operations.count == 1)
    #expect(try await replica.operations.pending().isEmpty)
    await replica.close()
    await #expect(throws: ReplicaError.closed) { try await replica.read { _ in } }
    #expect(try await other.read { try $0.query("SELECT * FROM notes") }.isEmpty)
    await other.close()
  }

  @Test("each replica keeps its token in memory, and nothing appears in the working folder")
  func tokens() async throws {
    let server = ScriptedServer()
    let folder = FileManager.default.currentDirectoryPath
    let before = try FileManager.default.contentsOfDirectory(atPath: folder)
    let ada = try await open(server, token: .fixed("ada"))
    let bob = try await open(server, token: .fixed("bob"))
    for (replica, token) in [(ada, "ada"), (bob, "bob")] {
      try await replica.sync()
      #expect(server.requests.last?.headers["Authorization"] == "Bearer \(token)")
    }
    let created = try FileManager.default.contentsOfDirectory(atPath: folder)
      .filter { !before.contains($0) && $0.contains(":memory:") }
    #expect(created.isEmpty)
    await ada.close()
    await bob.close()
  }

  @Test("a joined space has a ledger of its own, and a sync may run while the file is read")
  func joined() async throws {
    let replica = try await open(ScriptedServer())
    let family = try await replica.spaces.join("family")
    try await replica.write { try $0.execute("CREATE TABLE shopping(id TEXT PRIMARY KEY)") }
    try await family.track("shopping")
    try await replica.write { database in
      try database.execute("INSERT INTO notes VALUES ('a', 'x')")
      try database.execute("INSERT INTO shopping VALUES ('milk')")
    }
    #expect(try await replica.operations.pending().map(\.operation.key.table) == ["notes"])
    #expect(try await family.operations.pending().map(\.operation.key.table) == ["shopping"])
    #expect(try await family.read { try $0.query("SELECT * FROM notes") }.count == 1)
    try await replica.spaces.leave("family", discardingChanges: true)
    #expect(try await replica.read { try $0.query("SELECT * FROM shopping") }.isEmpty)
    await replica.close()
  }

  @Test(
    "the files of missions are in a folder of its owner's, which the end of the replica deletes")
  func missionFolder() async throws {
    var replica: Replica? = try await open(ScriptedServer())
    let folder = try #require(try replica?.missionFolder())
    let parent = URL(filePath: folder).deletingLastPathComponent().path
    let mode = try FileManager.default.attributesOfItem(atPath: parent)[.posixPermissions]
    #expect(mode as? Int == 0o700)
    replica = nil
    #expect(!FileManager.default.fileExists(atPath: parent))
    let closed = try await open(ScriptedServer())
    let other = try closed.missionFolder()
    #expect(other != folder)
    await closed.close()
    #expect(
      !FileManager.default.fileExists(atPath: URL(filePath: other).deletingLastPathComponent().path)
    )
  }

  @Test("a suspended replica refuses work, and continues with its rows")
  func suspended() async throws {
    let replica = try await open(ScriptedServer())
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    await replica.suspend()
    await #expect(throws: ReplicaError.suspended) { try await replica.read { _ in } }
    replica.resume()
    #expect(try await replica.read { try $0.query("SELECT id FROM notes") }.count == 1)
    await replica.close()
  }
}

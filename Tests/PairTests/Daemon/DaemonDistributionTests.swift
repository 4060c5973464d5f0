import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// `ferryd migrate --distribute` as a process.
@Suite("The command that distributes a store", .hangLimit)
struct DaemonDistributionTests {
  @Test(
    "the command distributes a store, and a server of it takes packets and serves them",
    .enabled(if: CitusSchema.database != nil, "FERRY_TEST_CITUS names no coordinator of Citus"))
  func processes() async throws {
    let schema = try CitusSchema("process")
    let migrate = ["migrate", "--distribute", "--database", schema.url]
    let done = try await ChildProcess.run(try Executables.ferryd(), migrate)
    #expect(done.status == .exited(0))
    #expect(done.error.contains("26 tables distributed; the store is on "))
    let server = try ChildProcess(
      try Executables.ferryd(),
      ["serve", "--listen", "127.0.0.1:0", "--database", schema.url])
    let ready = try await server.line { $0.contains("listening on http://") }
    let port = try #require(ready.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { UInt16($0.1) })
    let made = try await ServiceSocket.exchange(port, "PUT", "/v1/spaces/notes")
    #expect(made.status == 201 || made.status == 200)
    let posted = try await ServiceSocket.exchange(
      port, "POST", "/v1/spaces/notes/packets",
      body: Packet.serviceSample(1, operations: 3).encoded())
    #expect(posted.status == 200)
    let page = try await ServiceSocket.exchange(port, "GET", "/v1/spaces/notes/changes")
    let head = try PageReader.head(of: page.body)
    #expect(head.count == 3)
    let backup = try await ChildProcess.run(
      try Executables.ferryd(),
      ["backup", try TemporaryDirectory().file("backup").path, "--database", schema.url])
    #expect(backup.status == .exited(1) && backup.error.contains("Citus"))
    server.send(SIGTERM)
    #expect(try await server.exitStatus() == .exited(0))
    try schema.remove()
  }
  @Test("a database without the extension is refused with the statement that makes it")
  func noExtension() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let done = try await ChildProcess.run(
      try Executables.ferryd(), ["migrate", "--distribute", "--database", url])
    #expect(done.status == .exited(1) && done.error.contains("CREATE EXTENSION citus"))
  }

  @Test("the embedded store is refused")
  func embedded() async throws {
    let done = try await EmbeddedDaemon().run("migrate", "--distribute")
    #expect(done.status == .exited(2) && done.error.contains("the embedded store is one file"))
  }
}

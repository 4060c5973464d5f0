import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// `ferryd space set`, `show` and `prune`, beside a running server.
@Suite("The retention commands", .hangLimit)
struct DaemonRetentionTests {
  @Test("the commands set and show a space's retention and prune by it, even while a server runs")
  func commands() async throws {
    let daemon = try EmbeddedDaemon()
    #expect(try await daemon.run("space", "create", "notes").status == .exited(0))
    let set = try await daemon.run("space", "set", "notes", "--retention", "36h")
    #expect(set.output.contains("retention  36h\n"))
    #expect(set.error.contains("keep 14d or more"))
    let long = try await daemon.run("space", "set", "notes", "--retention", "14d")
    #expect(long.status == .exited(0) && long.error == "")
    let forever = try await daemon.run(
      "space", "set", "notes", "--retention", "forever", "--json")
    #expect(forever.output.contains("\"retentionMs\":null") && forever.error == "")
    #expect(
      try await daemon.run("space", "set", "notes", "--retention", "soon").status == .exited(2))
    #expect(try await daemon.run("space", "set", "other", "--retention", "1d").status == .exited(1))
    let (child, port) = try await daemon.serve()
    let packet = Packet.serviceSample(1, operations: 3)
    let posted = try await ServiceSocket.exchange(
      port, "POST", "/v1/spaces/notes/packets", body: packet.encoded())
    #expect(posted.status == 200)
    let kept = try await daemon.run("space", "prune", "notes", "--json")
    #expect(kept.output.hasPrefix("{\"operations\":0,"))
    let pruned = try await daemon.run("space", "prune", "notes", "--older-than", "0s")
    #expect(
      pruned.output
        == "pruned 2 operations, 0 tombstones and 0 buffered packets; the history begins after 3\n")
    let epoch = try await daemon.run("space", "show", "notes", "--json").output
    let cursor = try #require(epoch.firstMatch(of: /"epoch":"([0-9a-f]+)"/)).1
    let expired = try await ServiceSocket.exchange(
      port, "GET", "/v1/spaces/notes/changes?cursor=\(cursor).1.1")
    #expect(expired.status == 410)
    #expect(Problem(decoding: expired.body)?.code == .cursorExpired)
    let whole = try await ServiceSocket.exchange(port, "GET", "/v1/spaces/notes/changes")
    #expect(whole.status == 200)
    child.send(SIGTERM)
    #expect(try await child.exitStatus() == .exited(0))
  }
}

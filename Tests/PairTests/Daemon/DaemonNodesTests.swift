import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// Two `ferryd` processes on one PostgreSQL.
@Suite(.hangLimit)
struct DaemonNodesTests {
  static func serve(_ database: String) async throws -> (ChildProcess, UInt16) {
    let child = try ChildProcess(
      try Executables.ferryd(), ["serve", "--listen", "127.0.0.1:0", "--database", database])
    let ready = try await child.line { $0.contains("listening on http://") }
    let address = ready.split(separator: " ").first { $0.hasPrefix("http://") } ?? ""
    return (child, try #require(UInt16(address.split(separator: ":").last ?? "")))
  }

  @Test("a node serves other nodes' packets, notifies its listeners, and detects duplicates")
  func twoNodes() async throws {
    let database = try PostgresCluster.shared().createDatabase()
    async let starting = (Self.serve(database), Self.serve(database))
    let ((first, one), (second, two)) = try await starting
    #expect(try await ServiceSocket.exchange(one, "PUT", "/v1/spaces/notes").status == 200)
    let listener = try ServiceSocket(port: two)
    try await listener.send("GET", "/v1/spaces/notes/events")
    _ = try await listener.read(until: #""head":"0""#)
    let packet = Packet.serviceSample(1, operations: 3).encoded()
    let posted = try await ServiceSocket.exchange(
      one, "POST", "/v1/spaces/notes/packets", body: packet)
    #expect(posted.status == 200)
    _ = try await listener.read(until: #""head":"3""#)
    let again = try await ServiceSocket.exchange(
      two, "POST", "/v1/spaces/notes/packets", body: packet)
    #expect(
      try PacketAnswer(decoding: again.body, limits: .standard).receipt.status == .duplicate)
    for child in [first, second] { child.send(SIGTERM) }
    #expect(try await first.exitStatus() == .exited(0))
    #expect(try await second.exitStatus() == .exited(0))
  }
}

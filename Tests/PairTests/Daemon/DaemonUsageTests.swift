import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// `ferryd space usage`, and quotas of a real server.
@Suite("Quotas of a running server", .hangLimit)
struct DaemonUsageTests {
  @Test("the server enforces its configured quota, and the command lists each principal's usage")
  func quota() async throws {
    let daemon = try EmbeddedDaemon()
    #expect(try await daemon.run("space", "create", "notes").status == .exited(0))
    let (child, port) = try await daemon.serve(["--quota-records", "3"])
    var statuses: [Int] = []
    for seed: UInt64 in 1...2 {
      let packet = Packet.serviceSample(seed, operations: 3)
      let answer = try await ServiceSocket.exchange(
        port, "POST", "/v1/spaces/notes/packets", body: packet.encoded())
      statuses.append(answer.status)
    }
    #expect(statuses == [200, 507])
    let listed = try await daemon.run("space", "usage", "notes", "--json")
    #expect(listed.output.hasPrefix("{\"usage\":[{\"principal\":null,\"records\":3,"))
    #expect(listed.output.contains("{\"principal\":\"anonymous\",\"records\":3,"))
    let table = try await daemon.run("space", "usage", "notes")
    #expect(table.output.contains("(all)") && table.output.contains("anonymous"))
    #expect(try await daemon.run("space", "usage", "other").status == .exited(1))
    child.send(SIGTERM)
    #expect(try await child.exitStatus() == .exited(0))
  }
}

import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// `ferryd space usage`, and quotas of a real server.
@Suite("Quotas of a running server", .hangLimit)
struct SpaceUsageCommandTests {
  @Test("the server enforces its configured quota, and the command lists each principal's usage")
  func quota() async throws {
    let tests = try ServiceDaemonTests()
    #expect(try await tests.run("space", "create", "notes").status == .exited(0))
    let (child, port) = try await tests.serve(["--quota-records", "3"])
    var statuses: [Int] = []
    for seed: UInt64 in 1...2 {
      let packet = Packet.serviceSample(seed, operations: 3)
      let answer = try await ServiceSocket.exchange(
        port, "POST", "/v1/spaces/notes/packets", body: packet.encoded())
      statuses.append(answer.status)
    }
    #expect(statuses == [200, 507])
    let listed = try await tests.run("space", "usage", "notes", "--json")
    #expect(listed.output.hasPrefix("{\"usage\":[{\"principal\":null,\"records\":3,"))
    #expect(listed.output.contains("{\"principal\":\"anonymous\",\"records\":3,"))
    let table = try await tests.run("space", "usage", "notes")
    #expect(table.output.contains("(all)") && table.output.contains("anonymous"))
    #expect(try await tests.run("space", "usage", "other").status == .exited(1))
    child.send(SIGTERM)
    #expect(try await child.exitStatus() == .exited(0))
  }
}

import Ferry
import FerryNetworking
import FerryTestSupport
import Testing

/// Device identifiers belong to the user of their first request.
@Suite(.hangLimit)
struct OwnershipTests {
  /// Returns two devices of a server with tokens, the first one having written something.
  private func devices(
    _ kind: StoreKind
  ) async throws -> (server: Server, one: Device, two: Device, token: String) {
    let server = try await Server.start(kind)
    let one = try await Device.joined(server.url, token: try await server.token("writer"))
    let token = try await server.token("writer")
    let two = try await Device.joined(server.url, token: token)
    try await one.write("INSERT INTO notes VALUES ('a', 'x', 1), ('b', 'x', 2)")
    for device in [one, two] { try await device.exchange() }
    return (server, one, two, token)
  }

  @Test(
    "a device with a new user's token takes a new identifier, and loses nothing",
    arguments: StoreKind.allCases)
  func changedToken(_ kind: StoreKind) async throws {
    let (server, one, two, _) = try await devices(kind)
    let former = try await one.status().device
    try await one.write("UPDATE notes SET n = n + 10")
    try await one.write("INSERT INTO notes VALUES ('c', 'x', 3)")
    let other = try await server.token("writer")
    try await one.ferry("init", "--server", server.url, "--space", Device.space, "--token", other)
    for device in [one, two] { try await device.exchange() }
    #expect(try await one.status().device != former)
    #expect(try await one.status().pending == 0)
    #expect(try await one.ferry("log").output.contains("belongs to another user"))
    // Each operation is there once, and none was sent again as lost.
    #expect(try await server.head(token: other) == 5)
    try await expectEqual([one, two])
    let settled = try await one.status().device
    try await one.exchange()
    #expect(try await one.status().device == settled)
  }

  @Test("a member can neither write nor read as another member's device")
  func impersonation() async throws {
    let (server, one, _, token) = try await devices(.embedded)
    let victim = try await one.status().device
    let headers: TransportHeaders = [
      "Authorization": "Bearer \(token)", "Content-Type": "application/json",
    ]
    let packets = "\(server.url)/v1/spaces/\(Device.space)/packets"
    func packet(_ device: String) -> [UInt8] {
      Array(
        """
        {"device":"\(device)","dependency":null,"operations":[{"id":"\
        0199c82c-c001-7000-800a-000000000001","table":"notes","record":"forged","kind":"insert",\
        "time":"0199c82cc0010000","data":{"body":"forged"}}]}
        """.utf8)
    }
    let forged = try await Wire.send(.post, packets, headers: headers, body: packet("\(victim)"))
    #expect(forged.status == 403 && forged.problem == "device_taken", "\(forged.text)")
    let nobody = "00000000-0000-0000-0000-000000000000"
    let asServer = try await Wire.send(.post, packets, headers: headers, body: packet(nobody))
    #expect(asServer.status == 400 && asServer.problem == "malformed_message", "\(asServer.text)")
    let changes = "\(server.url)/v1/spaces/\(Device.space)/changes?device="
    let read = try await Wire.send(.get, "\(changes)\(victim)", headers: headers)
    #expect(read.status == 403 && read.problem == "device_taken", "\(read.text)")
    let asNobody = try await Wire.send(.get, changes + nobody, headers: headers)
    #expect(asNobody.status == 400, "\(asNobody.text)")
    // The victim continues without a disturbance.
    try await one.write("INSERT INTO notes VALUES ('c', 'x', 3)")
    try await one.exchange()
    #expect(try await one.status().device == victim)
  }
}

import Ferry
import FerryNetworking
import FerryTestSupport
import Foundation
import Testing

/// The names of devices, through the programs.
@Suite(.hangLimit)
struct DeviceNameTests {
  /// Returns two devices in a space; both edit the same note offline, and the second one syncs first.
  private func conflict(_ pair: Pair, _ body: String = "x") async throws {
    try await pair.one.write("INSERT OR REPLACE INTO notes VALUES ('a', 'old', 1)")
    for device in [pair.one, pair.two] { try await device.exchange() }
    try await pair.one.write("UPDATE notes SET body = '\(body) of one' WHERE id = 'a'")
    try await pair.two.write("UPDATE notes SET body = '\(body) of two' WHERE id = 'a'")
    try await pair.two.exchange()
    try await pair.one.exchange()
  }

  private func joins(
    _ device: Device, _ server: Server, _ arguments: String...
  ) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(
      try Executables.ferry(),
      ["--replica", device.path, "init", "--server", server.url, "--space", Device.space]
        + arguments, directory: device.directory.url)
  }

  @Test(
    "a conflict shows the other device's name, and a new name after the next sync",
    arguments: StoreKind.allCases)
  func conflicts(_ kind: StoreKind) async throws {
    let pair = try await Pair.make(kind)
    let named = try await joins(pair.two, pair.server, "--name", "Ada's laptop")
    #expect(named.output.contains("called Ada's laptop"), "\(named.output)\(named.error)")
    #expect(try await pair.two.ferry("status").output.contains("Ada's laptop"))
    try await pair.one.ferry("name", "Desk")
    try await conflict(pair)
    let table = try await pair.one.ferry("conflicts").output
    #expect(table.contains("this device") && table.contains("\"Ada's laptop\" "), "\(table)")
    let line = try #require(
      try JSONLine.all(try await pair.one.ferry("conflicts", "--json").output).first)
    #expect(line.text("winnerName") == "Ada's laptop" && line.text("loserName") == "Desk")
    #expect(line.text("winner") == "\(try await pair.two.status().device)")
    #expect(try await pair.one.ferry("log").output.contains("lost to \"Ada's laptop\" ("))
    // The device changes its name; the other one learns the name with the next sync.
    try await pair.two.ferry("name", "Ada’s 笔记本")
    try await pair.two.exchange()
    #expect(try await pair.one.ferry("conflicts").output.contains("\"Ada's laptop\""))
    try await pair.one.exchange()
    #expect(try await pair.one.ferry("conflicts").output.contains("\"Ada’s 笔记本\""))
    // Without a name, the end of the identifier is shown again.
    try await pair.two.ferry("name", "--remove")
    try await pair.two.exchange()
    try await pair.one.exchange()
    let short = "\(try await pair.two.status().device)".suffix(8)
    #expect(try await pair.one.ferry("conflicts").output.contains("  \(short) "))
  }

  @Test("devices of one name are distinguished, and the library has names and labels")
  func equalNames() async throws {
    let pair = try await Pair.make()
    let one = try await pair.one.open()
    #expect(try await one.deviceName() == nil)
    try await one.setDeviceName("laptop")
    #expect(try await one.deviceName() == "laptop")
    try await pair.two.ferry("name", "Laptop")
    try await conflict(pair)
    let device = try await pair.two.status().device
    let names = try await one.deviceNames()
    #expect(names[device] == "Laptop")
    #expect(names.label(for: device) == "\"Laptop\" (\("\(device)".suffix(8)))")
    #expect(try await pair.one.ferry("conflicts").output.contains(names.label(for: device)))
  }

  @Test("a device keeps its name under a new identifier, and on a server that lost the name")
  func newIdentity() async throws {
    let pair = try await Pair.make()
    try await pair.two.ferry("name", "Ada's laptop")
    try await pair.two.write("INSERT INTO notes VALUES ('b', 'x', 1)")
    try await pair.two.exchange()
    let copy = try Device()
    try pair.two.copy(to: copy)
    for device in [pair.two, copy] {
      try await device.write("INSERT INTO notes VALUES (hex(randomblob(8)), 'x', 1)")
      try await device.exchange()
    }
    let devices = [try await pair.two.status().device, try await copy.status().device]
    #expect(devices[0] != devices[1])
    #expect(try await names(of: devices, pair.server) == ["Ada's laptop", "Ada's laptop"])
    // Another client with the same access removes the name: the next sync sends it again.
    let lost = try await put(#"{"name":null}"#, devices[0], pair.server)
    #expect(lost.status == 200, "\(lost.text)")
    #expect(try await names(of: devices, pair.server) == [nil, "Ada's laptop"])
    try await pair.two.exchange()
    #expect(try await names(of: devices, pair.server) == ["Ada's laptop", "Ada's laptop"])
  }

  @Test("a sync makes no request about names that has nothing to say")
  func requests() async throws {
    let pair = try await Pair.make()
    try await pair.two.ferry("name", "Ada's laptop")
    try await conflict(pair)
    let before = try await requestCount(pair.server)
    #expect(before > 0)
    for device in [pair.one, pair.two] {
      try await device.write("INSERT INTO notes VALUES (hex(randomblob(8)), 'x', 1)")
      for _ in 1...2 { try await device.exchange() }
      try await device.exchange("pull")
    }
    #expect(try await requestCount(pair.server) == before)
  }

  @Test("a name is sent by a watch at once, without another change")
  func watch() async throws {
    let pair = try await Pair.make()
    try await pair.two.write("INSERT INTO notes VALUES ('b', 'x', 1)")
    try await pair.two.exchange()
    let replica = try await pair.two.open()
    let device = try await pair.two.status().device
    let watch = Task { try await replica.watch() }
    defer { watch.cancel() }
    try await pair.two.ferry("name", "Ada's laptop")
    try await eventually("the server to have the name") {
      try await names(of: [device], pair.server) == ["Ada's laptop"]
    }
  }

  @Test(
    "a name that could harm a terminal or a reader is refused",
    arguments: ["", " ", "a\nb", "\u{1B}[31mred", "a\u{202E}b", String(repeating: "a", count: 65)])
  func hostile(name: String) async throws {
    let pair = try await Pair.make()
    let refused = try await pair.one.ferry("name", name, exits: 2)
    #expect(refused.error.contains("the name was not set"), "\(refused.error)")
    #expect(!refused.error.contains("\u{1B}"))
    #expect(try await joins(pair.one, pair.server, "--name", name).status == .exited(2))
    #expect(try await pair.one.status().deviceName == nil)
    // Another client sends it without a check.
    try await conflict(pair)
    var json = JSONWriter()
    json.object { $0.member("name", name) }
    let body = String(decoding: json.finish(), as: UTF8.self)
    let device = try await pair.two.status().device
    let answer = try await put(body, device, pair.server)
    #expect(answer.status == 400 && answer.problem == "malformed_message", "\(answer.text)")
    #expect(try await names(of: [device], pair.server) == [nil])
  }

  @Test("another member cannot rename a device", arguments: StoreKind.allCases)
  func members(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind)
    let device = try await Device.joined(server.url, token: try await server.token("writer"))
    try await device.ferry("name", "Ada's laptop")
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await device.exchange()
    let id = try await device.status().device
    let (mallory, reader) = (try await server.token("admin"), try await server.token("reader"))
    for (token, status) in [(mallory, 404), (reader, 403), (nil, 401)] {
      let answer = try await put(#"{"name":"Mallory"}"#, id, server, token: token)
      #expect(answer.status == status, "\(answer.text)")
    }
    #expect(try await names(of: [id], server, token: reader) == ["Ada's laptop"])
  }

  // MARK: Requests

  private func headers(_ token: String?) -> TransportHeaders {
    token.map { ["Authorization": "Bearer \($0)"] } ?? [:]
  }

  private func put(
    _ json: String, _ device: DeviceID, _ server: Server, token: String? = nil
  ) async throws -> Wire.Answer {
    try await Wire.send(
      .put, "\(server.url)/v1/spaces/\(Device.space)/devices/\(device)", headers: headers(token),
      body: Array(json.utf8))
  }

  /// Returns the names of devices as the server has them.
  private func names(
    of devices: [DeviceID], _ server: Server, token: String? = nil
  ) async throws -> [String?] {
    let answer = try await Wire.send(
      .post, "\(server.url)/v1/spaces/\(Device.space)/devices", headers: headers(token),
      body: DevicesRequest(devices: devices).encoded())
    let found = try DevicesAnswer(decoding: Array(answer.text.utf8), limits: .standard).devices
    return devices.map { device in found.first { $0.device == device }?.name?.text }
  }

  /// Returns the number of requests about names, from the server's metrics.
  private func requestCount(_ server: Server) async throws -> Double {
    let metrics = try await Wire.send(.get, "\(server.url)/metrics").text
    return metrics.split(separator: "\n").filter {
      $0.hasPrefix("ferry_http_requests_total") && $0.contains("/devices")
    }.compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.reduce(0, +)
  }
}

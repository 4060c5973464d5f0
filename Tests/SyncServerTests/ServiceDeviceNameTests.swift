import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// Requests about the names of devices.
@Suite(.hangLimit)
struct ServiceDeviceNameTests {
  private static let device = "0199c306-6400-7000-800a-11ce00000001"
  private static let other = "0199c368-0c00-7000-800b-0b0000000002"
  private static let path = "/v1/spaces/notes/devices"

  /// Returns the token of the device's owner.
  private func owner(_ fixture: ServiceFixture) async throws -> AccessToken {
    let token = try await fixture.token(.writer)
    let known = try #require(try await fixture.store.token(hash: token.hash)).token
    try fixture.store.add(try #require(DeviceID(Self.device)), of: Principal(known))
    return token
  }

  private func put(
    _ json: String, to device: String = Self.device, _ fixture: ServiceFixture,
    by token: AccessToken
  ) async -> HTTPResponse {
    await fixture.send("PUT", "\(Self.path)/\(device)", token: token, body: Array(json.utf8))
  }

  private func ask(_ json: String, _ fixture: ServiceFixture) async throws -> HTTPResponse {
    let token = try await fixture.token(.reader)
    return await fixture.send("POST", Self.path, token: token, body: Array(json.utf8))
  }

  @Test("a device gets a name, members read it, and null removes it")
  func names() async throws {
    let fixture = ServiceFixture()
    let owner = try await owner(fixture)
    let kept = await put(#"{"name":"Ada's laptop"}"#, fixture, by: owner)
    #expect(kept.status == 200)
    #expect(kept.text == #"{"device":"\#(Self.device)","name":"Ada's laptop"}"#)
    let wanted = #"{"devices":["\#(Self.other)","\#(Self.device)"]}"#
    let found = try await ask(wanted, fixture)
    #expect(found.text == #"{"devices":[{"device":"\#(Self.device)","name":"Ada's laptop"}]}"#)
    #expect(await put(#"{"name":null}"#, fixture, by: owner).status == 200)
    #expect(try await ask(wanted, fixture).text == #"{"devices":[]}"#)
  }

  @Test("a name of another principal's device is refused like that of an unknown device")
  func foreign() async throws {
    let fixture = ServiceFixture()
    let device = try #require(DeviceID(Self.device))
    try fixture.store.add(device, of: try #require(Principal("owner:ada")))
    let other = try await fixture.token(.writer)
    let refused = await put(#"{"name":"x"}"#, fixture, by: other)
    #expect(refused.status == 404 && refused.problem?.code == .notFound)
  }

  @Test(
    "a name that breaks a rule is refused, and so is a device that is none",
    arguments: [
      #"{"name":""}"#, #"{"name":" "}"#, #"{"name":"a\nb"}"#, #"{"name":"a\u001b[2Jb"}"#,
      #"{"name":"a\u202Eb"}"#, #"{"name":7}"#, #"{}"#, #"{"name":"a","name":"b"}"#,
      #"{"name":"\#(String(repeating: "a", count: 65))"}"#, #"{"name":"\ud800"}"#,
    ])
  func hostile(json: String) async throws {
    let fixture = ServiceFixture()
    let owner = try await owner(fixture)
    #expect(await put(json, fixture, by: owner).problem?.code == .malformedMessage, "\(json)")
    let device = try #require(DeviceID(Self.device))
    #expect(try await fixture.store.deviceNames(of: [device], in: 1) == [])
  }

  @Test(
    "the address of a name is that of a device",
    arguments: ["x", "00000000-0000-0000-0000-000000000000", "0199c306-6400-7000-800a-11ce0000000"])
  func address(device: String) async throws {
    let fixture = ServiceFixture()
    let owner = try await owner(fixture)
    let refused = await put(#"{"name":"x"}"#, to: device, fixture, by: owner)
    #expect(refused.problem?.code == .malformedMessage, "\(device)")
  }

  @Test("a request asks for some devices, each once and not too many")
  func bounds() async throws {
    let fixture = ServiceFixture()
    let many = (0...Limits.standard.devicesPerRequest).map {
      DeviceID(UniqueID(high: 1, low: UInt64($0)))
    }
    let most = DevicesRequest(devices: Array(many.dropLast())).encoded()
    #expect(try await ask(String(decoding: most, as: UTF8.self), fixture).status == 200)
    let tooMany = String(decoding: DevicesRequest(devices: many).encoded(), as: UTF8.self)
    let once = #""\#(Self.device)""#
    for json in [tooMany, #"{"devices":[]}"#, "{}", #"{"devices":[\#(once),\#(once)]}"#] {
      let refused = try await ask(json, fixture)
      #expect(refused.problem?.code == .malformedMessage, "\(json.prefix(80))")
    }
  }
}

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

  private func put(
    _ json: String, to device: String = Self.device, _ fixture: ServiceFixture
  ) async throws -> HTTPResponse {
    let token = try await fixture.token(.writer)
    return await fixture.send(
      "PUT", "\(Self.path)/\(device)", token: token, body: Array(json.utf8))
  }

  private func ask(_ json: String, _ fixture: ServiceFixture) async throws -> HTTPResponse {
    let token = try await fixture.token(.reader)
    return await fixture.send("POST", Self.path, token: token, body: Array(json.utf8))
  }

  @Test("a device gets a name, members read it, and null removes it")
  func names() async throws {
    let fixture = ServiceFixture()
    let kept = try await put(#"{"name":"Ada's laptop"}"#, fixture)
    #expect(kept.status == 200)
    #expect(kept.text == #"{"device":"\#(Self.device)","name":"Ada's laptop"}"#)
    let wanted = #"{"devices":["\#(Self.other)","\#(Self.device)"]}"#
    let found = try await ask(wanted, fixture)
    #expect(found.text == #"{"devices":[{"device":"\#(Self.device)","name":"Ada's laptop"}]}"#)
    #expect(try await put(#"{"name":null}"#, fixture).status == 200)
    #expect(try await ask(wanted, fixture).text == #"{"devices":[]}"#)
  }

  @Test("a name of another principal's device is refused like that of an unknown device")
  func foreign() async throws {
    let fixture = ServiceFixture()
    let device = try #require(DeviceID(Self.device))
    fixture.store.state.withLock { _ = $0.foreignDevices.insert(device) }
    let refused = try await put(#"{"name":"x"}"#, fixture)
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
    #expect(try await put(json, fixture).problem?.code == .malformedMessage, "\(json)")
    #expect(fixture.store.state.withLock { $0.deviceNames.isEmpty })
  }

  @Test(
    "the address of a name is that of a device",
    arguments: ["x", "00000000-0000-0000-0000-000000000000", "0199c306-6400-7000-800a-11ce0000000"])
  func address(device: String) async throws {
    let refused = try await put(#"{"name":"x"}"#, to: device, ServiceFixture())
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

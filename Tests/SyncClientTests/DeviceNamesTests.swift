import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The labels of devices.
@Suite(.hangLimit)
struct DeviceNamesTests {
  private static func device(_ low: UInt64, high: UInt64 = 1) -> DeviceID {
    DeviceID(UniqueID(high: high, low: low))
  }

  private static func names(_ texts: [String?]) throws -> DeviceNames {
    DeviceNames(
      try texts.enumerated().map { index, text in
        NamedDevice(device(UInt64(index)), try text.map { try DeviceName(checking: $0) })
      })
  }

  @Test("a name is quoted, and a device without a name has the end of its identifier")
  func labels() throws {
    let names = try Self.names(["Ada's laptop", nil, #"a "b" \"#, "this device"])
    #expect(names.label(for: Self.device(0)) == "\"Ada's laptop\"")
    #expect(names.label(for: Self.device(1)) == "00000001")
    #expect(names.label(for: Self.device(2)) == #""a \"b\" \\""#)
    #expect(names.label(for: Self.device(3)) == "\"this device\"", "no name is a word of Ferry's")
    #expect(names.label(for: Self.device(9)) == "00000009", "an unknown device")
    #expect(names.label(for: .server) == "the server", "no device has its identifier")
    #expect(names[Self.device(0)] == "Ada's laptop" && names[Self.device(1)] == nil)
  }

  @Test("devices with names that look alike are distinguished by their identifiers")
  func equalNames() throws {
    let texts = ["Ada", "ada", "Ada B", "Ada\u{A0}B", "\u{E9}", "e\u{301}", "other"]
    let names = try Self.names(texts)
    for index in 0..<6 {
      let label = names.label(for: Self.device(UInt64(index)))
      #expect(label == "\"\(texts[index])\" (0000000\(index))")
    }
    #expect(names.label(for: Self.device(6)) == "\"other\"")
  }

  @Test("devices whose identifiers end alike are shown by whole identifiers")
  func equalEnds() throws {
    let devices = [Self.device(7), Self.device(7, high: 2)]
    let names = DeviceNames(
      [NamedDevice(devices[0], try DeviceName(checking: "x")), NamedDevice(devices[1], nil)])
    #expect(names.label(for: devices[1]) == "\(devices[1])")
    let same = try DeviceNames(devices.map { NamedDevice($0, try DeviceName(checking: "x")) })
    #expect(Set(devices.map(same.label)) == Set(devices.map { "\"x\" (\($0))" }))
  }
}

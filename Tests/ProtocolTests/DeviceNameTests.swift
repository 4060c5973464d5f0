import FerryProtocol
import FerryTestSupport
import Testing

/// The rules of devices' names, and the messages with them.
@Suite(.hangLimit)
struct DeviceNameTests {
  private static let deviceA = DeviceID(UniqueID(high: 1, low: 1))
  private static let longest = String(repeating: "a", count: Limits.deviceNameCharacters)

  @Test(
    "names of any language are taken as they are",
    arguments: [
      "Ada's laptop", "x", "Ноутбук Ады", "笔记本 2", "لپ‌تاپ", "👩‍💻", "❤️", "a\u{301}", "\"'\\<&>",
      "-rf", longest, String(repeating: "\u{10FFFD}", count: 64),
    ])
  func allowed(text: String) throws {
    let name = try DeviceName(checking: text)
    #expect(name.text == text)
    let request = DeviceNameRequest(name: name)
    #expect(try DeviceNameRequest(decoding: request.encoded(), limits: .standard) == request)
    #expect(name.text.utf8.count <= 4 * Limits.deviceNameCharacters)
  }

  @Test(
    "a name that is empty, too long, or unsafe to show is refused",
    arguments: [
      "", " ", "\u{200D}", "\u{3000}", " a", "a ", "a\u{A0}", longest + "a",
      "a" + String(repeating: "\u{301}", count: 64), String(repeating: "a", count: 100_000),
      "a\0", "a\nb", "a\rb", "a\tb", "\u{1B}[31mred", "a\u{7F}", "a\u{85}b", "a\u{9B}31m",
      "a\u{2028}b", "a\u{2029}b", "a\u{202E}b", "a\u{2066}b", "a\u{200F}b", "a\u{61C}b",
      "a\u{200B}b", "a\u{AD}b", "a\u{FEFF}b", "a\u{E0041}b", "\u{3164}",
    ])
  func refused(text: String) throws {
    #expect(throws: DeviceNameFault.self) { try DeviceName(checking: text) }
    var json = JSONWriter()
    json.object { $0.member("name", text) }
    let bytes = json.finish()
    #expect(throws: MalformedMessage.self) {
      try DeviceNameRequest(decoding: bytes, limits: .standard)
    }
    var answer = JSONWriter()
    answer.object { json in
      json.key("devices")
      json.array { json in
        json.element()
        json.object { json in
          json.member("device", Self.deviceA.value)
          json.member("name", text)
        }
      }
    }
    let list = answer.finish()
    #expect(throws: MalformedMessage.self) { try DevicesAnswer(decoding: list, limits: .standard) }
  }

  @Test("bytes that are no UTF-8 are no name")
  func encoding() {
    let bytes = Array(#"{"name":""#.utf8) + [0xC3, 0x28] + Array(#""}"#.utf8)
    #expect(throws: MalformedMessage.self) {
      try DeviceNameRequest(decoding: bytes, limits: .standard)
    }
  }

  @Test("names that look the same and differ in bytes are different names")
  func bytes() throws {
    let names = try ["\u{E9}", "e\u{301}"].map { try DeviceName(checking: $0) }
    #expect(names[0] != names[1])
    #expect(Set(names).count == 2)
  }

  @Test("messages with names are read and written back byte for byte")
  func golden() throws {
    let limits = Limits.standard
    let name = try DeviceName(checking: "Ada's laptop")
    let request = try ProjectFiles.fixture("requests/device-name")
    let wish = try DeviceNameRequest(decoding: request, limits: limits)
    #expect(wish.name == name && wish.encoded() == request)
    let pair = try ProjectFiles.fixture("devices/named")
    let named = try NamedDevice(decoding: pair, limits: limits)
    #expect(named.name == name && named.encoded() == pair)
    let question = try ProjectFiles.fixture("requests/devices")
    let wanted = try DevicesRequest(decoding: question, limits: limits)
    #expect(wanted.devices.count == 2 && wanted.encoded() == question)
    let list = try ProjectFiles.fixture("devices/names")
    let answer = try DevicesAnswer(decoding: list, limits: limits)
    #expect(answer.devices == [named] && answer.encoded() == list)
  }

  @Test("a page shows the device's own name and the number of changed names")
  func page() throws {
    let head = try PageReader.head(of: try ProjectFiles.fixture("pages/named"))
    #expect(head.deviceName?.text == "Ada's laptop" && head.nameChanges == 3)
    let plain = try PageReader.head(of: try ProjectFiles.fixture("pages/empty"))
    #expect(plain.deviceName == nil && plain.nameChanges == 0)
  }

  @Test("a list of devices has each once, at most as many as allowed, and never the server")
  func lists() throws {
    let many = (0...Limits.standard.devicesPerRequest).map {
      DeviceID(UniqueID(high: 1, low: UInt64($0)))
    }
    let most = DevicesRequest(devices: Array(many.dropLast()))
    #expect(try DevicesRequest(decoding: most.encoded(), limits: .standard) == most)
    for devices in [many, [], [many[1], many[1]], [.server]] {
      let bytes = DevicesRequest(devices: devices).encoded()
      #expect(throws: MalformedMessage.self) {
        try DevicesRequest(decoding: bytes, limits: .standard)
      }
    }
  }
}

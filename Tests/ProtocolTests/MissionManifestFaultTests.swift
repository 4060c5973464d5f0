import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Invalid manifests", .hangLimit)
struct MissionManifestFaultTests {
  private func fault(_ change: (inout MissionManifest) -> Void) -> String? {
    var manifest = MissionManifestTests.manifest([MissionManifestTests.item("a")])
    change(&manifest)
    return manifest.fault()
  }

  @Test("a priority has the limits of the command's option")
  func priority() {
    for priority in [-1_000_000, 0, 1_000_000] as [Int64] {
      #expect(fault { $0.priority = priority } == nil)
    }
    for priority in [-1_000_001, 1_000_001, .max, .min] as [Int64] {
      #expect(fault { $0.priority = priority }?.contains("priority \(priority)") == true)
    }
  }

  @Test(
    "an address without a host is refused",
    arguments: [
      "http://", "https:///a", "http://?x", "http://#x", "http://:80/a", "https://me@/a",
      "https://me:secret@:80", "http://\\a", "http:/a",
    ])
  func noHost(url: String) {
    #expect(fault { $0.items[0].url = url } != nil)
  }

  @Test(
    "an address with a host is accepted",
    arguments: [
      "http://h", "HTTPS://H:80/a?b#c", "http://[::1]:80/", "https://me:x@h/a@b", "http://h?x",
    ])
  func host(url: String) {
    #expect(fault { $0.items[0].url = url } == nil)
  }

  @Test(
    "a name that changes the direction of text is refused",
    arguments: [
      "photo\u{202E}gpj.exe", "\u{200F}a", "a/\u{2066}b", "a\u{61C}", "a\u{202A}\u{301}",
    ])
  func direction(path: String) {
    #expect(MissionPath.fault(in: path)?.contains("direction") == true)
  }

  @Test("names in scripts from right to left are accepted")
  func rightToLeft() { #expect(MissionPath.fault(in: "שיעור/درس ١.txt") == nil) }

  @Test(
    "a mission's name that is an invalid folder name on some system is refused",
    arguments: ["CON", "nul.x", "Com1", "a.", "a.."])
  func missionName(name: String) throws {
    let id = try #require(MissionID(name))
    #expect(fault { $0.id = id }?.contains("the mission's name") == true)
  }

  @Test("the refusal of a hash in capital letters reports the capital letters")
  func capitals() throws {
    let document = MissionManifestTests.manifest([MissionManifestTests.item("a")]).encoded()
    let hash = MissionManifestTests.hash(7).description
    let text = String(decoding: document, as: UTF8.self).replacing(
      "\"sha256\":\"\(hash)\"", with: "\"sha256\":\"\(String(repeating: "AB", count: 32))\"")
    let error = #expect(throws: MalformedMessage.self) {
      try MissionManifest(decoding: Array(text.utf8))
    }
    #expect(error?.reason.contains("in lower case") == true)
  }
}

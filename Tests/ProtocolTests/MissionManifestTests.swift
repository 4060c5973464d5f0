import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Mission manifests", .hangLimit)
struct MissionManifestTests {
  static func hash(_ byte: UInt8) -> ContentHash {
    guard let hash = ContentHash([UInt8](repeating: byte, count: 32)) else {
      preconditionFailure("32 bytes are a hash")
    }
    return hash
  }

  static func item(_ path: String, size: Int64 = 5, after: [String] = []) -> MissionItem {
    MissionItem(path: path, size: size, hash: hash(7), after: after)
  }

  static func manifest(_ items: [MissionItem]) -> MissionManifest {
    guard let space = SpaceName("school"), let id = MissionID("lesson-1") else {
      preconditionFailure("these are names")
    }
    return MissionManifest(space: space, id: id, version: 1, items: items)
  }

  @Test("a manifest is read back from its document byte for byte")
  func roundTrip() throws {
    var manifest = Self.manifest([
      MissionItem(
        path: "video/intro.mp4", kind: .video, mediaType: "video/mp4", size: (4 << 20) + 1,
        hash: Self.hash(1), chunks: [Self.hash(2), Self.hash(0xFE)], after: ["plan.json"]),
      MissionItem(
        path: "plan.json", kind: .json, mediaType: "application/json", size: 0, hash: Self.hash(3),
        url: "https://school.example/plan?page=1", isHosted: false),
    ])
    manifest.title = "The first “lesson”"
    manifest.priority = -3
    manifest.after = [MissionID("intro")!]
    let document = manifest.encoded()
    #expect(try MissionManifest(decoding: document) == manifest)
    #expect(try MissionManifest(decoding: document).encoded() == document)
    #expect(manifest.size == (4 << 20) + 1)
  }

  @Test("an unknown member is ignored; another format is refused")
  func unknown() throws {
    let text = String(decoding: Self.manifest([Self.item("a")]).encoded(), as: UTF8.self)
    let more = text.replacing("\"format\":1", with: "\"format\":1,\"colour\":{\"x\":[1]}")
    #expect(try MissionManifest(decoding: Array(more.utf8)) == Self.manifest([Self.item("a")]))
    let other = text.replacing("\"format\":1", with: "\"format\":2")
    #expect(throws: MalformedMessage.self) { try MissionManifest(decoding: Array(other.utf8)) }
  }

  @Test("one content with two sizes is refused")
  func sizes() throws {
    let same = Self.manifest([Self.item("a"), Self.item("b")])
    #expect(same.fault() == nil)
    let fault = Self.manifest([Self.item("a"), Self.item("b", size: 6)]).fault()
    #expect(fault == "items a and b have one sha256 and two sizes, 5 and 6")
  }

  @Test(
    "a path that leaves the store, or that some file system refuses, is refused",
    arguments: [
      "", "/etc/passwd", "../a", "a/../b", "a/./b", "a//b", "a/", "a\\b", "c:x", "a\u{0}b", "a\nb",
      "nul", "NUL.txt", "x/Con", "com1.log", "LPT9", "end.", "end ", "what?", "a*", "<a>", "a|b",
      String(repeating: "n", count: 201), String(repeating: "a/", count: 16) + "b",
      (0..<9).map { _ in String(repeating: "n", count: 150) }.joined(separator: "/"),
      // To Swift, a mark of punctuation and a combining one behind it are one character.
      "../\u{301}a", "a/\u{301}../../b", "a/..\u{2F}\u{308}b", "c:\u{301}x", "a\\\u{301}b",
      "nul.\u{301}x",
    ])
  func badPath(path: String) {
    #expect(MissionPath.fault(in: path) != nil)
    #expect(Self.manifest([Self.item(path)]).fault() != nil)
  }

  @Test(
    "ordinary names are accepted in every script",
    arguments: [
      "a", "video/1.mp4", "课程/第一课.json", "..a", "...b", "a b", "console.log", "com10", "-rf", "~",
    ])
  func goodPath(path: String) {
    #expect(MissionPath.fault(in: path) == nil)
  }

  @Test(
    "two items that have the same path on some file system are refused",
    arguments: [
      ["a", "a"], ["A", "a"], ["é", "e\u{301}"], ["a", "a/b"], ["a/b", "A"], ["x/a", "X/b"],
      ["a", "a/\u{301}b"], ["x/\u{301}a", "X/b"],
    ])
  func clash(paths: [String]) {
    #expect(Self.manifest(paths.map { Self.item($0) }).fault() != nil)
  }

  @Test("an item that waits for itself or for an absent item is refused")
  func order() {
    let circle = [
      Self.item("a", after: ["c"]), Self.item("b", after: ["a"]), Self.item("c", after: ["b"]),
    ]
    #expect(Self.manifest(circle).fault()?.contains("circle") == true)
    #expect(Self.manifest([Self.item("a", after: ["x"])]).fault()?.contains("“x”") == true)
    let chain = [Self.item("a"), Self.item("b", after: ["a"]), Self.item("c", after: ["b", "a"])]
    #expect(Self.manifest(chain).fault() == nil)
  }

  @Test("sizes and chunks that do not fit each other are refused")
  func chunks() {
    func fault(_ size: Int64, _ count: Int, hosted: Bool = true) -> String? {
      var item = Self.item("a", size: size)
      item.chunks = (0..<count).map { Self.hash(UInt8($0)) }
      item.isHosted = hosted
      item.url = "http://example.org/a"
      return Self.manifest([item]).fault()
    }
    let chunk = MissionManifest.chunkSizeDefault
    #expect(fault(0, 0) == nil)
    #expect(fault(chunk, 0) == nil)
    #expect(fault(chunk, 1) != nil)
    #expect(fault(chunk + 1, 2) == nil)
    #expect(fault(chunk + 1, 0) != nil)
    #expect(fault(chunk + 1, 0, hosted: false) == nil)
    #expect(fault(chunk * 3, 2) != nil)
    #expect(fault(-1, 0) != nil)
    #expect(fault(.max, 0) != nil)
  }

  @Test("an invalid value in a manifest is refused with a reason")
  func faults() {
    func fault(_ change: (inout MissionManifest) -> Void) -> String? {
      var manifest = Self.manifest([Self.item("a")])
      change(&manifest)
      return manifest.fault()
    }
    #expect(fault { _ in } == nil)
    #expect(fault { $0.items = [] } != nil)
    #expect(fault { $0.version = 0 } != nil)
    #expect(fault { $0.chunkSize = 3 << 20 } != nil)
    #expect(fault { $0.chunkSize = 1 << 10 } != nil)
    #expect(fault { $0.after = [$0.id] } != nil)
    #expect(fault { $0.title = String(repeating: "t", count: 1_025) } != nil)
    #expect(fault { $0.items[0].isHosted = false } != nil)
    #expect(fault { $0.items[0].url = "file:///etc/passwd" } != nil)
    #expect(fault { $0.items[0].url = "http://x/ y" } != nil)
    #expect(fault { $0.items[0].mediaType = "" } != nil)
  }

  @Test("a hash is 64 lower-case digits and compares by its bytes")
  func hashes() {
    let text = "00ff" + String(repeating: "a1", count: 30)
    #expect(ContentHash(text)?.description == text)
    #expect(ContentHash(text)?.bytes.prefix(3) == [0, 0xFF, 0xA1])
    for wrong in ["", "00", text + "0", text + "00", text.uppercased(), text.dropLast() + "g"] {
      #expect(ContentHash(wrong) == nil)
    }
    #expect(Self.hash(1) < Self.hash(2))
  }

  @Test("a catalogue record is read back from its columns, and refused if a needed one is missing")
  func record() throws {
    var manifest = Self.manifest([Self.item("a")])
    manifest.after = [MissionID("x")!, MissionID("y.z")!]
    let record = MissionRecord(
      of: manifest, hash: Self.hash(9), manifestSize: 300, signature: [1, 2], signer: [3],
      publishedAt: 1_700_000_000_000)
    let columns = record.columns
    #expect(columns.map(\.name) == columns.map(\.name).sorted())
    func read(without missing: Name = "") -> MissionRecord? {
      MissionRecord(id: "lesson-1") { name in
        name == missing ? nil : columns.first { $0.name == name }?.value
      }
    }
    #expect(read() == record)
    for name: Name in ["version", "size", "manifest", "manifestSize", "signature", "signer"] {
      #expect(read(without: name) == nil)
    }
    #expect(read(without: "title")?.title == "")
  }
}

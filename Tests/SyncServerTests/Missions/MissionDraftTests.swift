import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer

@Suite("Drafts of missions", .hangLimit)
struct MissionDraftTests {
  private static let hash = String(repeating: "ab", count: 32)

  private func read(_ json: String) throws -> MissionDraft {
    try MissionDraft(decoding: Array(json.utf8))
  }

  @Test("a manifest's files and addresses become items, with kinds and types by their names")
  func manifest() throws {
    let draft = try read(
      """
      {"mission":"tour","title":"A tour","summary":"…","priority":3,"after":["base"],
       "chunkSize":65536,"items":[
        {"path":"media/a.MP4","file":"raw/a.mp4"},{"file":"b.json","after":["media/a.MP4"]},
        {"path":"c","file":"raw/a.mp4","kind":"image","mediaType":"image/x"},
        {"path":"far.zip","url":"https://e.example/far.zip","sha256":"\(Self.hash)","size":7}]}
      """)
    #expect(draft.files == ["raw/a.mp4", "b.json"])
    let video = FileDigest(
      size: 70_000, hash: ContentHash(of: [1]),
      chunks: [ContentHash(of: [2]), ContentHash(of: [3])])
    let json = FileDigest(size: 5, hash: ContentHash(of: [4]))
    let space = try #require(SpaceName("s"))
    let id = try #require(draft.id)
    let manifest = try draft.manifest(
      in: space, as: id, digests: ["raw/a.mp4": video, "b.json": json]
    ).get()
    #expect(manifest.items.map(\.path) == ["media/a.MP4", "b.json", "c", "far.zip"])
    #expect(manifest.items.map(\.kind) == [.video, .json, .image, .archive])
    #expect(
      manifest.items.map(\.mediaType)
        == ["video/mp4", "application/json", "image/x", "application/zip"])
    #expect(manifest.items.map(\.isHosted) == [true, true, true, false])
    #expect(manifest.items[0].chunks == video.chunks)
    #expect(manifest.items[1].after == ["media/a.MP4"])
    #expect((manifest.title, manifest.priority, manifest.chunkSize) == ("A tour", 3, 65_536))
    #expect(manifest.after.map(\.value) == ["base"])
  }

  @Test("files whose names look alike are read each for itself")
  func similarNames() throws {
    let draft = try read(
      """
      {"items":[{"path":"a","file":"\u{E9}"},{"path":"b","file":"e\u{301}"}]}
      """)
    #expect(draft.files.map { $0.utf8.count } == [2, 3])
    let one = FileDigest(size: 1, hash: ContentHash(of: [1]))
    let two = FileDigest(size: 2, hash: ContentHash(of: [2]))
    let manifest = try draft.manifest(
      in: try #require(SpaceName("s")), as: try #require(MissionID("m")),
      digests: ["\u{E9}": one, "e\u{301}": two]
    ).get()
    #expect(manifest.items.map(\.hash) == [one.hash, two.hash])
  }

  @Test("a fault in a manifest's text is reported with its line and column")
  func places() {
    let text = "{\n \"items\": [\n  {\"file\": \"ä\", \"size\": x}]}"
    let error = #expect(throws: MissionDraftError.self) { try read(text) }
    #expect(error?.place?.description == "line 3, column 25")
    #expect(error?.description.hasPrefix("line 3, column 25: ") == true)
    #expect(TextPlace(ofByte: 0, in: []).description == "line 1, column 1")
    #expect(TextPlace(ofByte: 9, in: Array("a\n".utf8)).description == "line 2, column 1")
    let whole = #expect(throws: MissionDraftError.self) { try read(#"{"items":[]}"#) }
    #expect(whole?.place == nil)
  }

  @Test(
    "a fault in a manifest is reported with the item's name",
    arguments: [
      (#"{"items":[]}"#, "at least one item"), (#"{}"#, "items"), (#"[]"#, "object"),
      (#"{"items":[{"path":"a"}]}"#, "item a has neither"),
      (#"{"items":[{"file":"a"},{"file":"a"}]}"#, "“a” is a duplicate"),
      (#"{"items":[{"path":"../a","file":"a"}]}"#, "“../a”"),
      (#"{"items":[{"path":"a","file":"a","size":3}]}"#, "item a: with a “file”"),
      (#"{"items":[{"path":"a","file":"a","knd":"x"}]}"#, "item a has no member “knd”"),
      (#"{"items":[{"path":"a","file":"a","kind":"film"}]}"#, "item a: kind is one of video"),
      (#"{"itms":[]}"#, "no member “itms”"),
      (#"{"format":2,"items":[{"file":"a"}]}"#, "format 1"),
      (#"{"items":[{"file":"a","after":["b"]}]}"#, "item a waits for “b”"),
      (
        #"{"mission":"-x","items":[{"file":"a"}]}"#,
        "line 1, column 16: a mission's name has 1 to 128 characters"
      ),
      (#"{"chunkSize":1000,"items":[{"file":"a"}]}"#, "chunkSize 1000"),
      (
        #"{"items":[{"path":"a","url":"ftp://x","sha256":"\#(Self.hash)","size":1}]}"#,
        "item a: “ftp://x”"
      ),
    ])
  func faults(json: String, reason: String) {
    #expect {
      _ = try read(json)
    } throws: { error in
      "\(error)".contains(reason)
    }
  }

  @Test("a folder becomes its files, without hidden ones, and with the targets of links in it")
  func folder() throws {
    let fixture = try BlobFixture()
    for name in ["b.txt", "a/z.png", "a/c/x.json", ".hidden", ".git/config", "a/.DS_Store"] {
      _ = try fixture.file("tree/\(name)", 3)
    }
    let tree = fixture.folder.file("tree").path
    #expect(symlink("../b.txt", tree + "/a/link.txt") == 0)
    #expect(
      try FolderListing.files(in: tree) == ["a/c/x.json", "a/link.txt", "a/z.png", "b.txt"])
    #expect(symlink("../a", tree + "/a/loop") == 0)
    #expect(throws: MissionDraftError.self) { _ = try FolderListing.files(in: tree) }
  }

  @Test("a name that is not UTF-8 is refused as such")
  func bytesOfNames() throws {
    let fixture = try BlobFixture()
    _ = try fixture.file("tree/a", 3)
    let tree = fixture.folder.file("tree").path
    let file = open(Array(tree.utf8CString.dropLast()) + [0x2F, 0x62, -1, 0], O_CREAT, 0o600)
    #expect(file >= 0)
    close(file)
    let error = #expect(throws: MissionDraftError.self) { _ = try FolderListing.files(in: tree) }
    #expect(error?.reason.contains("UTF-8") == true)
  }

  @Test("links that lead out of a folder, pipes, and empty folders are refused by name")
  func outside() throws {
    let fixture = try BlobFixture()
    _ = try fixture.file("secret", 3)
    _ = try fixture.file("tree/a", 3)
    let tree = fixture.folder.file("tree").path
    #expect(symlink("../secret", tree + "/out") == 0)
    #expect {
      _ = try FolderListing.files(in: tree)
    } throws: { "\($0)".contains("item out leads out of the folder") }
    #expect {
      _ = try FolderListing.file("out", in: tree)
    } throws: { "\($0)".contains("leads out of the folder") }
    #expect(throws: MissionDraftError.self) { _ = try FolderListing.file("../secret", in: tree) }
    #expect(throws: MissionDraftError.self) { _ = try FolderListing.file("/etc/passwd", in: tree) }
    #expect(try FolderListing.file("a", in: tree).hasSuffix("/tree/a"))
    unlink(tree + "/out")
    #expect(mkfifo(tree + "/pipe", 0o600) == 0)
    #expect {
      _ = try FolderListing.files(in: tree)
    } throws: { "\($0)".contains("item pipe") }
    let empty = fixture.folder.file("empty").path
    #expect(mkdir(empty, 0o700) == 0)
    #expect(throws: MissionDraftError.self) { _ = try FolderListing.files(in: empty) }
  }

  @Test(
    "a file's extension determines its kind",
    arguments: [
      ("a/b.JPG", MissionItemKind.image, "image/jpeg"), ("x.tar", .archive, "application/x-tar"),
      ("x.m4a", .audio, "audio/mp4"), ("x", .file, "application/octet-stream"),
      ("a.b/x", .file, "application/octet-stream"), (".json", .file, "application/octet-stream"),
      ("index.html", .file, "text/html"), ("x.geojson", .json, "application/geo+json"),
    ])
  func types(path: String, kind: MissionItemKind, type: String) {
    let found = MediaType(ofPath: path)
    #expect((found.kind, found.name) == (kind, type))
  }
}

import FerryMissions
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryShell

@Suite("Bundles of a shell", .hangLimit)
struct BundleTests {
  @Test("a description has known members of the right form only")
  func descriptions() throws {
    let good = """
      {"name":"board","version":"2.1","entry":"app/index.html",\
      "services":[{"name":"data"},{"name":"a.b","version":"2"}],"minShell":"1"}
      """
    let read = try FolderDeclaration(json: Array(good.utf8))
    #expect(read.name.value == "board")
    #expect(read.version.description == "2.1")
    #expect(read.entry.text == "app/index.html")
    #expect(read.services.map(\.description) == ["data", "a.b@2"])
    let short = try FolderDeclaration(json: Array(#"{"name":"b","version":"1"}"#.utf8))
    #expect(short.entry.text == "index.html" && short.minShell == nil)
    for (old, new) in [
      ("\"board\"", "\"Board\""), ("\"board\"", "\"\""), ("\"2.1\"", "\"\""),
      ("\"2.1\"", "2"), ("\"2.1\"", "\"02\""), ("\"2.1\"", "\"1.2.3.4.5\""),
      ("app/index.html", "../index.html"), ("app/index.html", "app/index.js"),
      ("\"data\"", "\"data.*\""), ("\"a.b\"", "\"a.b.c\""), ("\"2\"", "\"0\""),
      ("{\"name\":\"data\"}", "\"data\""), ("\"minShell\":\"1\"", "\"minShell\":\"1\",\"extra\":1"),
      ("\"minShell\":\"1\"", "\"minShell\":1"), ("\"1\"}", "\"1\",\"minShell\":\"1\"}"),
      ("\"1\"}", ""),
    ] {
      let bad = good.replacingOccurrences(of: old, with: new)
      #expect(throws: BundleSourceError.self, "\(new)") {
        try FolderDeclaration(json: Array(bad.utf8))
      }
    }
  }

  @Test("a path leads nowhere else")
  func paths() {
    for good in ["a", "a/b.js", "ä/ö.png", "a b"] { #expect(BundlePath(good) != nil, "\(good)") }
    let bad = [
      "", "/a", "a/", "a//b", ".", "..", "a/../b", ".git/config", "a\\b", "a\u{0}b", "a:b",
      "-/call",
      "a\nb", String(repeating: "a", count: 129),
      Array(repeating: "a", count: 17).joined(separator: "/"),
    ]
    for path in bad { #expect(BundlePath(path) == nil, "\(path)") }
  }

  @Test("the bridge comes before all scripts of a document, and within its head")
  func injection() {
    let secret = Secret(text: "s")
    func place(_ text: String) -> String {
      let injected = EntryPage.injected(Array(text.utf8), secret: secret, base: "/t/1/")
      let added =
        "<meta name=\"ferry-page\" content=\"s\"><script src=\"/t/1/-/ferry.js\"></script>"
      return String(decoding: injected, as: UTF8.self).replacingOccurrences(of: added, with: "|")
    }
    #expect(
      place("<!DOCTYPE html><html lang=en><head><script>")
        == "<!DOCTYPE html><html lang=en><head>|<script>")
    #expect(
      place("<!doctype html>\n<!-- <head> -->\n<HEAD a=\">\"><title>")
        == "<!doctype html>\n<!-- <head> -->\n<HEAD a=\">\">|<title>")
    #expect(place("<!doctype html><title>x") == "<!doctype html>|<title>x")
    #expect(place("<header>x") == "|<header>x")
    #expect(place("") == "|")
    #expect(place("<!-- open") == "|<!-- open")
    #expect(place("\u{FEFF}<p>") == "\u{FEFF}|<p>")
  }

  private func write(
    _ text: String, _ version: Int, to folder: TemporaryDirectory, _ more: String = ""
  ) throws {
    try Data(text.utf8).write(to: folder.file("index.html"))
    let json = #"{"name":"board","version":"\#(version)","entry":"index.html"\#(more)}"#
    try Data(json.utf8).write(to: folder.file(FolderDeclaration.fileName))
  }

  @Test("a folder's version stays as it was when its load began")
  func snapshots() async throws {
    let folder = try TemporaryDirectory()
    let bundle = DirectoryBundle(folder.url.path)
    let path = try #require(BundlePath("index.html"))
    try write("one", 1, to: folder)
    let one = try await bundle.next()
    try write("two", 2, to: folder)
    let two = try await bundle.next()
    #expect(try await bundle.file(path, of: one)?.readAll() == Array("one".utf8))
    #expect(try await bundle.file(path, of: two)?.readAll() == Array("two".utf8))
    #expect(try await bundle.file(try #require(BundlePath("none")), of: two) == nil)
  }

  @Test("a folder in another one whose name is not of ASCII is shown with the paths in it")
  func foreignName() async throws {
    let parent = try TemporaryDirectory()
    let folder = parent.file("\u{E9}t\u{E9}")
    try FileManager.default.createDirectory(
      at: folder.appending(path: "img"), withIntermediateDirectories: true)
    try Data("page".utf8).write(to: folder.appending(path: "index.html"))
    try Data("picture".utf8).write(to: folder.appending(path: "img/a.png"))
    let json = #"{"name":"board","version":"1","entry":"index.html"}"#
    try Data(json.utf8).write(to: folder.appending(path: FolderDeclaration.fileName))
    let bundle = DirectoryBundle(folder.path)
    let version = try await bundle.next()
    let path = try #require(BundlePath("img/a.png"))
    #expect(try await bundle.file(path, of: version)?.readAll() == Array("picture".utf8))
  }

  @Test("a content stays as long as a page load has it, however many follow")
  func open() async throws {
    let folder = try TemporaryDirectory()
    let bundle = DirectoryBundle(folder.url.path)
    let path = try #require(BundlePath("index.html"))
    try write("0", 0, to: folder)
    let first = try await bundle.next()
    #expect(try await bundle.next() == first)
    func follow(_ numbers: ClosedRange<Int>) async throws {
      for number in numbers {
        try write("\(number)", number, to: folder)
        let next = try await bundle.next()
        await bundle.confirm(next)
        await bundle.left(next)
      }
    }
    try await follow(1...9)
    #expect(try await bundle.file(path, of: first)?.readAll() == Array("0".utf8))
    // Two loads had it.
    await bundle.left(first)
    try await follow(10...19)
    #expect(try await bundle.file(path, of: first) != nil)
    await bundle.left(first)
    try await follow(20...29)
    await #expect(throws: BundleSourceError.self) { try await bundle.file(path, of: first) }
  }

  @Test("a folder is shown by the shell that it names and by later ones, number by number")
  func minShell() async throws {
    #expect(Shell.version == BundleVersion.shell)
    for (minShell, isShown) in [
      ("0.9", true), ("1", true), ("1.0", false), ("1.1", false), ("2", false),
    ] {
      let folder = try TemporaryDirectory()
      try write("one", 1, to: folder, #","minShell":"\#(minShell)""#)
      let shown = try? await DirectoryBundle(folder.url.path).next()
      #expect((shown != nil) == isShown, "\(minShell)")
    }
  }

  @Test("a version that failed gives way to the last good one, until the folder changes")
  func fallback() async throws {
    let folder = try TemporaryDirectory()
    let bundle = DirectoryBundle(folder.url.path)
    try write("one", 1, to: folder)
    let one = try await bundle.next()
    let failure = PageFailure(.crashed, "x")
    #expect(await bundle.fail(one, failure) == false)
    #expect(try await bundle.next() == one)
    await bundle.confirm(one)
    try write("two", 2, to: folder)
    let two = try await bundle.next()
    #expect(two.version == "2")
    #expect(await bundle.fail(two, failure))
    #expect(try await bundle.next() == one)
    // The same number with other content is another version.
    try write("two, corrected", 2, to: folder)
    #expect(try await bundle.next().version == "2")
    // An unreadable folder does not take the page away.
    try Data("{".utf8).write(to: folder.file(FolderDeclaration.fileName))
    #expect(try await bundle.next() == one)
  }

  @Test("a folder for a later shell, without an entry or with a strange file is not shown")
  func unusable() async throws {
    let folder = try TemporaryDirectory()
    let bundle = DirectoryBundle(folder.url.path)
    await #expect(throws: BundleSourceError.self) { try await bundle.next() }
    let json = #"{"name":"board","version":"1","minShell":"2"}"#
    try Data(json.utf8).write(to: folder.file(FolderDeclaration.fileName))
    await #expect(throws: BundleSourceError.self) { try await bundle.next() }
    try write("one", 1, to: folder)
    _ = try await bundle.next()
    try FileManager.default.removeItem(at: folder.file("index.html"))
    await #expect(throws: BundleSourceError.self) { try await bundle.next() }
    try write("one", 1, to: folder)
    try Data().write(to: folder.file("a:b"))
    await #expect(throws: BundleSourceError.self) { try await bundle.next() }
  }

  @Test("a version whose document is too large for a shell gives way to the last good one")
  func largeEntry() async throws {
    let visitor = try await ShellVisitor()
    _ = try await visitor.post("ready", "{}")
    #expect(visitor.confirmations == 1)
    let large = ShellVisitor.document + String(repeating: " ", count: 5 << 20)
    try Data(large.utf8).write(to: visitor.folder.file("index.html"))
    let navigation: [String: String?] = ["Sec-Fetch-Mode": "navigate", "Ferry-Page": nil]
    let begun = try await visitor.get(visitor.root, navigation)
    let left = try await visitor.get(try #require(begun.fields["location"]), navigation)
    #expect(left.status == 303)
    let shown = try await visitor.get(try #require(left.fields["location"]), navigation)
    #expect(shown.status == 200 && shown.body.count < 1_000)
    #expect(visitor.failures() == ["crashed: its document has more than 4194304 bytes"])
  }

  @Test("a link out of the folder is no file of it")
  func links() async throws {
    let folder = try TemporaryDirectory()
    try write("one", 1, to: folder)
    try FileManager.default.createSymbolicLink(
      at: folder.file("passwd.txt"), withDestinationURL: URL(filePath: "/etc/passwd"))
    let bundle = DirectoryBundle(folder.url.path)
    let version = try await bundle.next()
    #expect(try await bundle.file(try #require(BundlePath("passwd.txt")), of: version) == nil)
  }
}

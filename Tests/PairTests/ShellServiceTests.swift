import FerryShell
import FerryTestSupport
import Foundation
import Testing

/// The services of a shell by the bridge, with a real server and another device.
@Suite("Services of a shell with a server", .hangLimit)
struct ShellServiceTests {
  /// Returns the state of a mission in the page's list; "" if it has none.
  private func state(_ mission: String, _ page: BridgePage) async throws -> String? {
    let found = try await page.list("missions.list").first { $0.text("mission") == mission }
    return found.map { $0.text("state") ?? "" }
  }

  @Test(
    "a page downloads, pauses, resumes, cancels and removes missions, and reads their files in parts"
  )
  func missions() async throws {
    let stage = try await ShellStage()
    let page = stage.page
    let draft = try Draft()
    let text = String(repeating: "0123456789", count: 20_000)
    try draft.write("notes/film.txt", Array(text.utf8))
    try await stage.server.publish(draft.path, as: "film")
    try draft.write("notes/film.txt", Array(text.reversed().map(\.utf8).joined()))
    try await stage.server.publish(draft.path, as: "second")
    _ = try await page.call("data.sync")
    let listed = try await page.list("missions.list")
    #expect(listed.map { $0.text("mission") }.sorted { $0 ?? "" < $1 ?? "" } == ["film", "second"])
    #expect(listed.allSatisfy { $0.members["isDownloaded"] as? Bool == false })
    let film = ["mission": "film"]
    #expect(try await page.code("missions.files", film) == "not_found")
    // A server that does not answer keeps the download where it is.
    stage.server.send(SIGSTOP)
    _ = try await page.call("missions.download", film)
    try await eventually("the download") { try await state("film", page) == "downloading" }
    _ = try await page.call("missions.pause", film)
    try await eventually("the pause") { try await state("film", page) == "paused" }
    _ = try await page.call("missions.download", ["mission": "second"])
    _ = try await page.call("missions.cancel", ["mission": "second"])
    try await eventually("the cancellation") { try await state("second", page) == "cancelled" }
    stage.server.send(SIGCONT)
    _ = try await page.call("missions.resume", film)
    try await eventually("the film") { try await state("film", page) == "done" }
    let file = try #require(try await page.list("missions.files", film).first)
    #expect(file.text("path") == "notes/film.txt" && file.text("type") == "text/plain")
    #expect(file.number("size") == text.utf8.count)
    let address = try #require(file.text("file"))
    let whole = try await page.get(address)
    #expect(whole.status == 200 && whole.text == text)
    let part = try await page.get(address, range: "bytes=123456-123465")
    #expect(part.status == 206 && part.text == "6789012345")
    #expect(part.headers["Content-Range"] == "bytes 123456-123465/\(text.utf8.count)")
    let end = try await page.get(address, range: "bytes=-3")
    #expect(end.status == 206 && end.text == "789")
    #expect(try await page.get(address, range: "bytes=200000-").status == 416)
    // Another load of the page has different addresses.
    let later = try await page.loadAgain()
    #expect(
      try await later.get(address.replacingOccurrences(of: page.base, with: later.base)).status
        == 404)
    _ = try await page.call("missions.remove", film)
    #expect(try await page.code("missions.files", film) == "not_found")
    #expect(try await page.get(address).status != 206)
    await stage.end()
  }

  @Test(
    "a service about missions explains a name that is none, and one that is not there",
    arguments: ["download", "pause", "resume", "cancel", "remove", "files"])
  func missionCodes(service: String) async throws {
    let stage = try await ShellStage()
    _ = try await stage.page.call("data.sync")
    let name = "missions.\(service)"
    #expect(try await stage.page.code(name, ["mission": "../x"]) == "invalid_argument")
    #expect(try await stage.page.code(name, ["mission": 1]) == "invalid_argument")
    #expect(try await stage.page.code(name) == "invalid_argument")
    #expect(try await stage.page.code(name, ["mission": "none"]) == "not_found")
    await stage.end()
  }

  @Test("a page learns the program, its version, the kind of system and its own bundle")
  func device() async throws {
    let stage = try await ShellStage()
    let facts = try await stage.page.object("device.info").members as? [String: String]
    #if os(Linux)
      #expect(facts?["system"] == "linux")
    #endif
    #expect(facts?["app"] == "probe" && facts?["appVersion"] == "7.1")
    #expect(facts?["shell"] == Shell.version.description)
    #expect(facts?["bundle"] == "probe" && facts?["bundleVersion"] == "1.2")
    #expect(facts?.count == 6)
    await stage.end()
  }
}

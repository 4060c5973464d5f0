import Ferry
import FerryShell
import FerryTestSupport
import Foundation
import Testing

/// Published bundles as the pages of a shell.
@Suite(.hangLimit)
struct BundleShellTests {
  private let draft: Draft

  init() throws { draft = try Draft() }

  private func publish(_ version: String, on server: Server) async throws {
    try draft.write("index.html", Array("<h1>\(version)</h1>".utf8))
    try draft.write(
      "ferry-bundle.json",
      Array(
        #"{"name":"board","version":"\#(version)","services":[{"name":"data.query"}]}"#.utf8))
    let finished = try await server.run(
      ["bundle", "publish", draft.path, "--space", Device.space])
    try #require(finished.status == .exited(0), "\(finished.error)")
  }

  private func page(_ source: PublishedBundle, _ version: PageVersion) async throws -> String? {
    guard let content = try await source.file(version.entry, of: version) else { return nil }
    return String(decoding: try await content.readAll(), as: UTF8.self)
  }

  @Test(
    "a page load takes a fetched version, an open page keeps its own, and a failure is reported")
  func source() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let replica = try await device.open()
    let bundles = try await replica.bundles()
    let name = try #require(BundleName("board"))
    let source = PublishedBundle(name, in: bundles)
    await #expect(throws: BundleSourceError.self) { try await source.next() }
    try await publish("1", on: server)
    try await replica.sync()
    try await bundles.fetch(name)
    let first = try await source.next()
    #expect(first.version == "1" && first.services == ["data.query"])
    #expect(try await page(source, first) == "<h1>1</h1>")
    let absent = try #require(BundlePath("absent.js"))
    #expect(try await source.file(absent, of: first) == nil)
    await source.confirm(first)
    try await publish("2", on: server)
    try await replica.sync()
    // It is offered, and not here yet.
    #expect(try await source.next() == first)
    try await bundles.fetch(name)
    let second = try await source.next()
    #expect(second.version == "2")
    #expect(try await page(source, second) == "<h1>2</h1>")
    #expect(try await page(source, first) == "<h1>1</h1>")
    #expect(await source.fail(second, PageFailure(.silent, "no answer")))
    #expect(try await source.next() == first)
    try await replica.sync()
    let shown = try await server.ferryd("bundle", "show", "board", "--space", Device.space)
    #expect(shown.output.contains("silent: no answer"), "\(shown.output)\(shown.error)")
    await replica.close()
  }

  @Test("`ferry shell` shows a published bundle by its name")
  func command() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await publish("1", on: server)
    let early = try await device.ferry("shell", "board", "--no-open", exits: 1)
    #expect(early.error.contains("ferry bundle fetch board"), "\(early.error)")
    try await device.ferry("bundle", "fetch", "board")
    let shell = try device.start("shell", "board", "--no-open", "--json", "--sync")
    let line = try await shell.line { $0.contains("started") }
    let started = try #require(try JSONLine.all(line).first)
    #expect(started.text("version") == "1")
    #expect(started.text("address")?.hasPrefix("http://127.0.0.1:") == true)
    shell.send(SIGTERM)
    _ = try await shell.exitStatus()
  }
}

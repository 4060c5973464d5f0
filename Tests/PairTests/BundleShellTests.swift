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
    try draft.write("late.js", Array("late = \(version)".utf8))
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

  /// Returns the versions whose files a device has.
  private func here(_ device: Device) async throws -> [String?] {
    let listed = try JSONLine.all(try await device.ferry("bundle", "list", "--json").output)
    return listed.filter { $0.members["here"] as? Bool == true }.map { $0.text("version") }
  }

  /// Has another process publish, activate and confirm versions.
  private func confirm(_ versions: [String], on server: Server, _ device: Device) async throws {
    for version in versions {
      try await publish(version, on: server)
      try await device.ferry("bundle", "fetch", "board", "--activate")
      try await device.ferry("bundle", "confirm", "board")
    }
  }

  @Test("an open page keeps its files while another process confirms later versions")
  func leases() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let replica = try await device.open()
    let bundles = try await replica.bundles()
    let source = PublishedBundle(try #require(BundleName("board")), in: bundles)
    let late = try #require(BundlePath("late.js"))
    try await confirm(["1"], on: server, device)
    let first = try await source.next()
    #expect(try await source.next() == first)
    try await confirm(["2", "3", "4"], on: server, device)
    #expect(try await source.file(late, of: first)?.readAll() == Array("late = 1".utf8))
    #expect(try await here(device) == ["1", "2", "3", "4"])
    // Two loads had it: the second end removes it.
    await source.left(first)
    #expect(try await source.file(late, of: first) != nil)
    await source.left(first)
    #expect(try await here(device) == ["2", "3", "4"])
    // More versions than a shell remembers are open at once.
    var open: [PageVersion] = []
    for version in ["5", "6", "7", "8", "9"] {
      try await confirm([version], on: server, device)
      open.append(try await source.next())
    }
    for version in open {
      let content = try await source.file(late, of: version)?.readAll()
      #expect(content == Array("late = \(version.version)".utf8))
    }
    for version in open { await source.left(version) }
    #expect(try await here(device) == ["7", "8", "9"])
    await replica.close()
  }

  @Test("a killed shell keeps no files, and a page of a running one gets late files")
  func killedShell() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await confirm(["1"], on: server, device)
    let shell = try device.start("shell", "board", "--no-open", "--json")
    let line = try await shell.line { $0.contains("started") }
    let address = try #require(try JSONLine.all(line).first?.text("address"))
    let page = try await BridgePage.open(address)
    try await confirm(["2", "3", "4"], on: server, device)
    let late = try await page.get("late.js")
    #expect(late.status == 200 && late.text == "late = 1")
    #expect(try await page.loadAgain().get("late.js").text == "late = 4")
    #expect(try await here(device) == ["1", "2", "3", "4"])
    shell.send(SIGKILL)
    _ = try await shell.exitStatus()
    try await device.ferry("bundle", "confirm", "board")
    #expect(try await here(device) == ["2", "3", "4"])
  }

  @Test("a page that the user leaves gives its files up")
  func closing() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await confirm(["1"], on: server, device)
    let replica = try await device.open()
    let source = PublishedBundle(
      try #require(BundleName("board")), in: try await replica.bundles())
    let shell = try Shell.start(source, services: ServiceRegistry([], granting: []))
    let page = try await BridgePage.open(shell.makeAddress())
    try await confirm(["2", "3", "4"], on: server, device)
    #expect(try await page.get("late.js").status == 200)
    try await page.post("closed")
    #expect(try await here(device) == ["2", "3", "4"])
    #expect(try await page.get("late.js").status == 404)
    shell.stop()
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

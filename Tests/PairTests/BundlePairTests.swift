import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Bundles from the publisher's folder to a device's shell, with real processes between.
@Suite(.hangLimit)
struct BundlePairTests {
  private let draft: Draft

  init() throws { draft = try Draft() }

  func publish(
    _ version: String, on server: Server, _ more: String..., page: String? = nil,
    declaring: String = ""
  ) async throws {
    try draft.write("index.html", Array((page ?? "<h1>\(version)</h1>").utf8))
    try draft.write(
      "ferry-bundle.json", Array(#"{"name":"board","version":"\#(version)"\#(declaring)}"#.utf8))
    let finished = try await server.run(
      ["bundle", "publish", draft.path, "--space", Device.space] + more)
    try #require(finished.status == .exited(0), "\(finished.error)")
  }

  /// Returns the server's successes and failures of each version, the latest first.
  func counts(_ server: Server, _ options: [String] = []) async throws -> [[Int?]] {
    let shown = try await server.run(
      ["bundle", "show", "board", "--space", Device.space, "--json"] + options)
    let overview = try #require(try JSONLine.all(shown.output).first, "\(shown.error)")
    return try versions(overview).map { [$0.number("successes"), $0.number("failures")] }
  }

  private func versions(_ line: JSONLine) throws -> [JSONLine] {
    try #require(line.members["versions"] as? [[String: Any]]).map { JSONLine(members: $0) }
  }

  /// Returns the version in use on a device.
  private func inUse(_ device: Device) async throws -> String? {
    let shown = try await device.ferry("bundle", "show", "board", "--json")
    return try #require(try JSONLine.all(shown.output).first).object("active").text("version")
  }

  @Test(
    "a version is published, fetched, used, confirmed, left when it fails, and counted",
    arguments: StoreKind.allCases)
  func life(kind: StoreKind) async throws {
    let blobs = draft.directory.file("blobs").path
    let options = kind == .postgres ? ["--blobs", blobs] : []
    let database = kind == .postgres ? try await Server.database() : nil
    let server = try Server(database: database, options)
    try await server.start()
    let device = try await Device.joined(server.url)
    func publish(_ version: String, _ page: String) async throws {
      try draft.write("index.html", Array(page.utf8))
      try draft.write(
        "ferry-bundle.json", Array(#"{"name":"board","version":"\#(version)"}"#.utf8))
      let finished = try await server.run(
        ["bundle", "publish", draft.path, "--space", Device.space] + options)
      try #require(finished.status == .exited(0), "\(finished.error)")
    }
    try await publish("1", "one")
    let fetched = try await device.ferry("bundle", "fetch", "board", "--activate")
    #expect(fetched.output.contains("bundle board 1 is in use, on trial"), "\(fetched.output)")
    try await device.ferry("bundle", "confirm", "board")
    try await device.exchange()
    #expect(try await counts(server, options) == [[1, 0]])
    try await publish("2", "two")
    try await device.ferry("bundle", "fetch", "board")
    #expect(try await inUse(device) == "1")
    try await device.ferry("bundle", "activate", "board")
    #expect(try await inUse(device) == "2")
    let left = try await device.ferry(
      "bundle", "fallback", "board", "--reason", "a blank \u{1B}[31mpage")
    #expect(left.output == "bundle board 1 is in use again\n")
    // Nothing is sent before the next sync, and nothing twice.
    #expect(try await counts(server, options) == [[0, 0], [1, 0]])
    for _ in 0..<2 { try await device.exchange() }
    #expect(try await counts(server, options) == [[0, 1], [1, 0]])
    let shown = try await server.run(
      ["bundle", "show", "board", "--space", Device.space] + options)
    #expect(shown.output.contains("a blank  [31mpage"), "\(shown.output)")
    #expect(!shown.output.contains("\u{1B}"))
    // The failed version is not taken again, and a later one is.
    let kept = try await device.ferry("bundle", "activate", "board")
    #expect(kept.output == "bundle board 1 stays in use\n", "\(kept.output)")
    try await publish("2.1", "three")
    try await device.ferry("bundle", "fetch", "board", "--activate")
    #expect(try await inUse(device) == "2.1")
    #expect(try await device.open().verify().isEqual)
  }

  @Test("a share of the devices takes a version, and each of them keeps it in a larger share")
  func rollout() async throws {
    let server = try await Server.start()
    _ = try await Device.joined(server.url)
    try await publish("1", on: server)
    try await publish("2", on: server, "--percent", "40")
    let version = try #require(BundleVersion("2"))
    var isInside: [Bool] = []
    for percent in ["40", "75"] {
      if percent == "75" {
        let promoted = try await server.ferryd(
          "bundle", "promote", "board", "--space", Device.space, "--percent", percent)
        #expect(promoted.output == "board 2 is offered to 75% of the devices\n")
      }
      let share = try #require(BundleShare(percent: percent))
      let name = try #require(BundleName("board"))
      for number in 0..<8 where percent == "40" || number < isInside.count {
        let device = try await devices(number, server)
        try await device.exchange("pull")
        let id = try await device.status().device
        let expected = BundleRollout.includes(id, in: share, of: BundleID(name, version))
        let listed = try JSONLine.all(try await device.ferry("bundle", "list", "--json").output)
        let offered = listed.last?.members["offered"] as? Bool
        #expect(offered == expected, "\(id) at \(percent)")
        if percent == "40" {
          isInside.append(expected)
        } else {
          #expect(expected || !isInside[number], "\(id) left the rollout")
        }
      }
    }
  }

  /// The devices of the rollout, made once each.
  private actor Fleet {
    var devices: [Int: Device] = [:]
    func device(_ number: Int, _ make: () async throws -> Device) async throws -> Device {
      if let known = devices[number] { return known }
      let device = try await make()
      devices[number] = device
      return device
    }
  }

  private let fleet = Fleet()

  private func devices(_ number: Int, _ server: Server) async throws -> Device {
    try await fleet.device(number) { try await Device.joined(server.url) }
  }

  @Test("a withdrawn version is left at the next sync, by the library and the command alike")
  func withdrawal() async throws {
    let server = try await Server.start()
    let (one, two) = (try await Device.joined(server.url), try await Device.joined(server.url))
    for version in ["1", "2"] {
      try await publish(version, on: server)
      for device in [one, two] {
        try await device.ferry("bundle", "fetch", "board", "--activate")
        try await device.ferry("bundle", "confirm", "board")
      }
    }
    let replica = try await one.open()
    let bundles = try await replica.bundles()
    #expect(try await bundles.active("board")?.version == BundleVersion("2"))
    let withdrawn = try await server.ferryd("bundle", "withdraw", "board", "--space", Device.space)
    #expect(withdrawn.output == "board 2 is withdrawn\n")
    try await replica.sync()
    #expect(try await bundles.active("board")?.version == BundleVersion("1"))
    try await two.exchange()
    #expect(try await inUse(two) == "1")
    let refused = try await two.ferry("bundle", "fetch", "board", "2", exits: 1)
    #expect(refused.error.contains("was withdrawn"), "\(refused.error)")
    await replica.close()
  }

  @Test("a sync of all spaces of a file reports outcomes and leaves withdrawn versions, too")
  func severalSpaces() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await device.ferry("join", "family")
    try await publish("1", on: server)
    try await device.exchange()
    try await device.ferry("bundle", "fetch", "board", "--activate")
    try await device.ferry("bundle", "confirm", "board")
    try await device.ferry("sync")
    #expect(try await counts(server) == [[1, 0]])
    _ = try await server.ferryd("bundle", "withdraw", "board", "--space", Device.space)
    let replica = try await device.open()
    let bundles = try await replica.bundles()
    #expect(try await bundles.active("board") != nil)
    _ = try await replica.spaces.pull()
    #expect(try await bundles.active("board") == nil)
    await replica.close()
  }

  @Test("errors name the bundle and the next step", arguments: [false, true])
  func errors(isRemote: Bool) async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await publish("1", on: server)
    let remote = isRemote ? ["--server", server.url] : []
    func refused(_ arguments: String...) async throws -> String {
      let finished = try await server.run(
        ["bundle"] + arguments + ["--space", Device.space] + remote)
      #expect(finished.status == .exited(1))
      return finished.error
    }
    try draft.write("index.html", Array("another".utf8))
    let changed = try await refused("publish", draft.path)
    #expect(changed.contains("next: write another version into ferry-bundle.json"), "\(changed)")
    #expect(!changed.contains("mission"), "\(changed)")
    let empty = try Draft()
    func declare(_ text: String) throws {
      try empty.write("ferry-bundle.json", Array(text.utf8))
    }
    try declare(#"{"name":"board","version":"2","entry":"start.html"}"#)
    let bare = try await refused("publish", empty.path)
    #expect(bare.contains("it has no file beside ferry-bundle.json"), "\(bare)")
    #expect(bare.contains("the first page start.html") && !bare.contains("mission"), "\(bare)")
    try declare(#"{"name":"board","#)
    let broken = try await refused("publish", empty.path)
    #expect(broken.contains("why: the bundle: the file ends too early (at byte 16)"), "\(broken)")
    #expect(broken.contains(#"a JSON object such as {"name":"board","version":"1"}"#), "\(broken)")
    let absent = try await refused("withdraw", "board", "9")
    #expect(absent.contains("ferryd: bundle board has no such version"), "\(absent)")
    #expect(absent.contains("next: see `ferryd bundle show board"), "\(absent)")
    try await publish("7", on: server, declaring: #","minShell":"7""#)
    _ = try await server.run(["bundle", "withdraw", "board", "1", "--space", Device.space])
    let old = try await device.ferry("bundle", "fetch", "board", exits: 1)
    #expect(old.error.contains("the version needs a newer shell"), "\(old.error)")
    #expect(old.error.contains("bundle board 7 needs shell 7"), "\(old.error)")
  }

  @Test("an activation that is killed at any step leaves the old or the new version, whole")
  func kills() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    for version in ["1", "2"] {
      try await publish(version, on: server)
      try await device.ferry("bundle", "fetch", "board")
    }
    try await device.ferry("bundle", "activate", "board")
    let killer = try await StepKiller()
    var (step, found) = (0, ["2"])
    while true {
      step += 1
      let wanted = found.last == "1" ? "2" : "1"
      let ended = try await killer.run(
        try Executables.ferry(), ["--replica", device.path, "bundle", "activate", "board", wanted],
        killedAt: step)
      if ended.status == .exited(0) { break }
      #expect(ended.status == .killed(signal: SIGKILL), "\(ended.error)")
      let replica = try await device.open()
      let bundles = try await replica.bundles()
      let active = try #require(try await bundles.active("board"))
      let page = try await active.open(active.entry).readAll()
      #expect(String(decoding: page, as: UTF8.self) == "<h1>\(active.version)</h1>", "\(step)")
      found.append("\(active.version)")
      await replica.close()
    }
    #expect(Set(found) == ["1", "2"] && step > 10, "\(found)")
    // The next activation needs no repair.
    try await device.ferry("bundle", "activate", "board", "2")
    #expect(try await inUse(device) == "2")
  }

  @Test("a new version fetches only files that differ")
  func delta() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try draft.write("media/film.mp4", Draft.content(3, 2 << 20))
    try await publish("1", on: server)
    try await device.ferry("bundle", "fetch", "board", "--activate")
    // The server counts an answer after it has gone.
    let before: Int = try await eventually("the film to be counted") {
      let bytes = try await server.blobBytes()
      return bytes >= 2 << 20 ? bytes : nil
    }
    try await publish("2", on: server)
    try await device.ferry("bundle", "fetch", "board", "--activate")
    #expect(try await server.blobBytes() - before < 16 << 10)
    #expect(try await inUse(device) == "2")
  }

  @Test("an app reads files of the version in use, and another shell version is refused")
  func reading() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url, token: try await server.token("writer"))
    try draft.write("app.js", Array("export const a = 1".utf8))
    try await publish(
      "1", on: server, declaring: #","minShell":"2","services":[{"name":"data","version":"1"}]"#)
    let old = try await device.ferry("bundle", "fetch", "board", exits: 1)
    #expect(old.error.contains("bundle board 1 needs shell 2, and this is shell 1"))
    try await device.ferry("bundle", "--shell", "2", "fetch", "board", "--activate")
    let replica = try await device.open()
    let shell = try #require(BundleVersion("2"))
    let bundles = try await replica.bundles(options: BundleOptions(shell: shell))
    let active = try #require(try await bundles.active("board"))
    #expect(active.entry == "index.html" && active.paths == ["app.js", "index.html"])
    #expect(active.services.map(\.name) == ["data"] && active.minShell == shell)
    let script = try await active.open("app.js")
    #expect(script.mediaType == "text/javascript")
    #expect(try await script.read(from: 7, count: 5) == Array("const".utf8))
    await replica.close()
  }

  @Test("the documents' example of bundles equals the compiled one, and runs")
  func documented() async throws {
    let page = try Project.text("Documentation/bundles.md")
    let shown = try #require(page.firstMatch(of: /```swift\n(?<code>(?s:.*?))```/)).code
    let example = try Project.text("Tests/PairTests/DocumentedBundles.swift")
    let body = try #require(
      example.firstMatch(of: /func bundleExample.*\{\n(?<code>(?s:.*))\n\}/)
    ).code
    #expect(shown.filter { !$0.isWhitespace } == body.filter { !$0.isWhitespace })
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await publish("1", on: server)
    let replica = try await device.open()
    try await replica.sync()
    try await bundleExample(replica: replica)
    let bundles = try await replica.bundles()
    try await replica.sync()
    #expect(try await bundles.active("board")?.isConfirmed == true)
    #expect(try await counts(server) == [[1, 0]])
    await replica.close()
  }

  @Test(
    "a sync with the key's file reports outcomes of encrypted bundles, and one without does not")
  func encrypted() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await publish("1", on: server)
    let keys = try [UInt8(1), 2].map { byte in
      let path = device.directory.file("key-\(byte)").path
      try Data(repeating: byte, count: 32).write(to: URL(filePath: path))
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      return path
    }
    try await device.ferry("bundle", "--key-file", keys[0], "fetch", "board", "--activate")
    try await device.ferry("bundle", "--key-file", keys[0], "fallback", "board")
    try await device.ferry("sync")
    #expect(try await counts(server) == [[0, 0]])
    let wrong = try await device.ferry("sync", "--key-file", keys[1])
    #expect(wrong.error.contains("the outcomes of bundles are not reported"), "\(wrong.error)")
    #expect(try await counts(server) == [[0, 0]])
    try await device.ferry("sync", "--key-file", keys[0])
    #expect(try await counts(server) == [[0, 1]])
  }

  @Test("commands about bundles explain what is missing")
  func failures() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    for arguments in [
      ["show", "board"], ["fetch", "board"], ["activate", "board"], ["confirm", "board"],
      ["fallback", "board"],
    ] {
      let failed = try await device.ferry("bundle", arguments[0], arguments[1], exits: 1)
      #expect(failed.error.contains("  next: "), "\(failed.error)")
    }
    #expect(try await device.ferry("bundle", "list").output.hasPrefix("there is no bundle"))
    try await device.ferry("bundle", "show", "Board", exits: 2)
    try await device.ferry("bundle", "fetch", "board", "x", exits: 2)
    try await publish("1", on: server)
    try await device.exchange()
    let absent = try await device.ferry("bundle", "activate", "board", exits: 1)
    #expect(absent.error.contains("run `ferry bundle fetch` first"), "\(absent.error)")
  }
}

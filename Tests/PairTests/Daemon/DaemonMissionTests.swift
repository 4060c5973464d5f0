import FerryHTTPServer
import FerryMissionServer
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

/// `ferryd mission …` as processes, on the embedded store and through a server.
@Suite("The missions' commands", .hangLimit)
struct DaemonMissionTests {
  private let daemon: EmbeddedDaemon
  private let folder: TemporaryDirectory

  init() throws {
    daemon = try EmbeddedDaemon()
    folder = try TemporaryDirectory(prefix: "ferryd-missions")
  }

  private func write(_ name: String, _ text: String) throws {
    let path = folder.file(name)
    try FileManager.default.createDirectory(
      at: path.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: path)
  }

  private func run(_ arguments: String...) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(
      try Executables.ferryd(), ["mission"] + arguments + ["--data", daemon.data])
  }

  private var tour: String { folder.file("tour").path }

  private func makeTour() async throws {
    #expect(try await daemon.run("space", "create", "notes").status == .exited(0))
    try write("tour/index.html", "<h1>Tour</h1>")
    try write("tour/media/a.json", "{}")
    try write("tour/.hidden", "x")
  }

  @Test("commands on a directory without a store fail and create nothing there")
  func noStore() async throws {
    for arguments in [
      ["mission", "list", "--space", "notes"], ["mission", "show", "a", "--space", "notes"],
      ["mission", "retract", "a", "--space", "notes"], ["mission", "key"], ["mission", "collect"],
      ["space", "list"], ["space", "show", "notes"], ["space", "prune", "notes"],
      ["space", "set", "notes", "--retention", "1d"], ["token", "list"],
      ["token", "revoke", "abcdef"],
    ] {
      let failed = try await ChildProcess.run(
        try Executables.ferryd(), arguments + ["--data", daemon.data])
      #expect(failed.status == .exited(1), "\(arguments): \(failed.output)")
      #expect(failed.error.contains("there is no store in \(daemon.data)"), "\(failed.error)")
      #expect(failed.error.contains("next: check --data"), "\(failed.error)")
      #expect(!FileManager.default.fileExists(atPath: daemon.data), "\(arguments)")
    }
    // There is a store, but not the named content.
    #expect(try await daemon.run("space", "create", "notes").status == .exited(0))
    let blobs = folder.file("blobs").path
    for command in ["key", "collect"] {
      let failed = try await run(command, "--blobs", blobs)
      #expect(failed.status == .exited(1) && failed.error.contains(blobs), "\(failed.error)")
    }
    #expect(try await run("list", "--space", "notes", "--blobs", blobs).status == .exited(0))
    #expect(try await run("collect").output.hasPrefix("removed 0 files (0 B) and 0 unfinished"))
    #expect(!FileManager.default.fileExists(atPath: blobs))
    #expect(!FileManager.default.fileExists(atPath: daemon.data + "/blobs"))
  }

  @Test("an empty list of missions is reported with the command that publishes one")
  func none() async throws {
    #expect(try await daemon.run("space", "create", "notes").status == .exited(0))
    let listed = try await run("list", "--space", "notes")
    #expect(listed.output.hasPrefix("no mission is published in space notes: `ferryd mission"))
    #expect(try await run("list", "--space", "notes", "--json").output == "{\"missions\":[]}\n")
    try write("one/a.txt", "a")
    let one = try await run("publish", folder.file("one").path, "--space", "notes")
    #expect(one.output == "published one version 1: 1 item, 1 B\n")
  }

  @Test("a missing, unknown or insufficient token is reported with exit status 4")
  func tokens() async throws {
    try await makeTour()
    let reader = try await daemon.token("reader")
    let (child, port) = try await daemon.serve()
    let server = ["--server", "http://127.0.0.1:\(port)", "--space", "notes"]
    for (arguments, token) in [
      (["list"], nil), (["list"], "nonsense"), (["show", "tour"], nil),
      (["publish", tour], nil), (["publish", tour], reader), (["retract", "tour"], reader),
    ] as [([String], String?)] {
      let refused = try await ChildProcess.run(
        try Executables.ferryd(),
        ["mission"] + arguments + server + (token.map { ["--token", $0] } ?? []))
      #expect(refused.status == .exited(4), "\(arguments): \(refused.error)")
      #expect(refused.error.contains("--role admin"), "\(refused.error)")
    }
    child.send(SIGTERM)
    #expect(try await child.exitStatus() == .exited(0))
  }

  @Test("a folder is published, listed, shown, published again, retracted and collected")
  func life() async throws {
    try await makeTour()
    let first = try await run("publish", tour, "--space", "notes", "--title", "A tour")
    #expect(first.status == .exited(0))
    #expect(first.output == "published tour version 1: 2 items, 15 B\n")
    let again = try await run("publish", tour, "--space", "notes", "--title", "A tour", "--json")
    #expect(again.output.contains(#""version":1,"#) && again.output.contains(#""changed":false"#))
    try write("tour/media/a.json", "[]")
    let second = try await run("publish", tour, "--space", "notes", "--title", "A tour")
    #expect(second.output.hasPrefix("published tour version 2"))
    let listed = try await run("list", "--space", "notes")
    #expect(listed.output.contains("tour") && listed.output.contains("A tour"))
    let shown = try await run("show", "tour", "--space", "notes", "--verify", "--json")
    #expect(shown.status == .exited(0) && shown.output.contains(#""path":"media/a.json""#))
    #expect(shown.output.contains(#""damaged":[]"#))
    let kept = try await run("collect", "--json")
    #expect(kept.output.hasPrefix(#"{"files":0,"#))
    let gone = try await run("collect", "--keep", "0s", "--json")
    #expect(gone.output.hasPrefix(#"{"files":2,"#), "the first manifest, and its file")
    #expect(try await run("retract", "tour", "--space", "notes").output == "retracted tour\n")
    let none = try await run("retract", "tour", "--space", "notes")
    #expect(none.status == .exited(1) && none.error.contains("next:"))
    #expect(try await run("collect", "--keep", "0s", "--json").output.hasPrefix(#"{"files":3,"#))
  }

  @Test("damaged content is found, and repaired by publishing again")
  func damage() async throws {
    try await makeTour()
    _ = try await run("publish", tour, "--space", "notes")
    let blobs = try BlobDirectory(daemon.data + "/blobs")
    let hash = ContentHash(of: Array("{}".utf8))
    #expect(truncate(blobs.file(of: hash), 1) == 0)
    let found = try await run("show", "tour", "--space", "notes", "--verify")
    #expect(found.status == .exited(1) && found.error.contains("item media/a.json"))
    #expect(try await run("publish", tour, "--space", "notes").status == .exited(0))
    #expect(
      try await run("show", "tour", "--space", "notes", "--verify").status == .exited(0))
    // A damaged manifest does not hinder the next version.
    let listed = try await run("list", "--space", "notes", "--json").output
    let manifest = try #require(listed.firstMatch(of: /"manifest":"([0-9a-f]+)"/)?.1)
    #expect(truncate(blobs.file(of: try #require(ContentHash(String(manifest)))), 1) == 0)
    try write("tour/media/a.json", "[]")
    let next = try await run("publish", tour, "--space", "notes")
    #expect(next.output.hasPrefix("published tour version 2"), "\(next.error)")
  }

  @Test("a mission whose sizes are not permitted, or whose file is missing, writes nothing")
  func refusedEarly() async throws {
    try await makeTour()
    let large = tour + "/large.bin"
    #expect(FileManager.default.createFile(atPath: large, contents: nil))
    #expect(truncate(large, 1 << 40) == 0)
    let refused = try await run("publish", tour, "--space", "notes", "--chunk-size", "64KiB")
    #expect(refused.status != .exited(0) && refused.error.contains("chunks"), "\(refused.error)")
    try write("m.json", #"{"mission":"city","items":[{"path":"a","file":"tour/none"}]}"#)
    let missing = try await run("publish", folder.file("m.json").path, "--space", "notes")
    #expect(missing.status != .exited(0))
    #expect(!FileManager.default.fileExists(atPath: daemon.data + "/blobs"))
  }

  @Test("a manifest can name files beside it and other addresses; faults are reported")
  func manifest() async throws {
    try await makeTour()
    let hash = String(repeating: "ab", count: 32)
    try write(
      "m.json",
      """
      {"mission":"city","title":"City","items":[{"path":"page.html","file":"tour/index.html"},
        {"path":"far.mp4","url":"https://e.example/far.mp4","sha256":"\(hash)","size":9}]}
      """)
    let manifest = folder.file("m.json").path
    let published = try await run(
      "publish", manifest, "--space", "notes", "--priority", "5", "--after", "tour", "--json")
    #expect(published.output.contains(#""mission":"city""#))
    #expect(published.output.contains(#""priority":5,"after":["tour"]"#))
    try write("bad.json", #"{"mission":"x","items":[{"path":"a","file":"../secret"}]}"#)
    try write("typo.json", #"{"mission":"x","itms":[]}"#)
    for (arguments, reason) in [
      ([folder.file("bad.json").path, "--space", "notes"], "../secret"),
      ([folder.file("typo.json").path, "--space", "notes"], "itms"),
      ([folder.file("none").path, "--space", "notes"], "no such file"),
      ([tour, "--space", "nowhere"], "no space nowhere"),
      ([tour, "--space", "notes", "--id=-x"], "mission's name"),
      ([tour, "--space", "notes", "--chunk-size", "5KiB"], "chunkSize"),
    ] {
      let failed = try await ChildProcess.run(
        try Executables.ferryd(),
        ["mission", "publish", "--data", daemon.data] + arguments)
      #expect(failed.status != .exited(0), "\(arguments)")
      #expect(failed.error.contains(reason), "\(failed.error)")
      #expect(failed.error.contains("next:"), "\(failed.error)")
    }
    try write("place.json", "{\n  \"items\": [7]}")
    let place = try await run("publish", folder.file("place.json").path, "--space", "notes")
    #expect(place.error.contains("the manifest \(folder.file("place.json").path) cannot be"))
    #expect(place.error.contains("why: line 2, column 13: "), "\(place.error)")
    #expect(place.error.contains("next: correct the manifest"))
    try write("links/a.txt", "a")
    #expect(symlink("/etc/hostname", folder.file("links/out").path) == 0)
    let links = try await run("publish", folder.file("links").path, "--space", "notes")
    #expect(links.error.contains("the folder \(folder.file("links").path) cannot be"))
    #expect(links.error.contains("item out") && !links.error.contains("correct the manifest"))
    // Content named only by a hash cannot be sent again.
    try write(
      "hash.json",
      #"{"mission":"h","items":[{"path":"a","sha256":"\#(hash)","size":9,"hosted":true}]}"#)
    let unsent = try await run("publish", folder.file("hash.json").path, "--space", "notes")
    #expect(unsent.error.contains("give the item a `file`"), "\(unsent.error)")
    #expect(!unsent.error.contains("sends only the missing parts"))
    let list = try await run("list", "--space", "notes", "--json")
    #expect(list.output.components(separatedBy: #""mission""#).count == 2)
  }

  @Test("a command repeats a request that a busy server rejects, with the token, and no more")
  func busyServer() async throws {
    let seen = Mutex<[String]>([])
    let server = try HTTPServer(configuration: HTTPServer.Configuration()) { request in
      let count = seen.withLock { seen in
        seen.append("\(request.path) \(request.headers["authorization"] ?? "-")")
        return seen.count
      }
      if count == 2 {
        return HTTPResponse(status: 200, body: .bytes(Array(#"{"missions":[]}"#.utf8)))
      }
      return HTTPResponse(status: 503, headers: ["Retry-After": "0"], body: .bytes([]))
    }
    let arguments = [
      "mission", "list", "--space", "notes", "--server", "http://127.0.0.1:\(server.port)/",
      "--token", "secret",
    ]
    let list = try await ChildProcess.run(try Executables.ferryd(), arguments)
    #expect(list.status == .exited(0), "\(list.error)")
    let line = "/v1/spaces/notes/missions Bearer secret"
    #expect(seen.withLock { $0 } == [line, line])
    let busy = try await ChildProcess.run(try Executables.ferryd(), arguments)
    #expect(busy.status == .exited(1) && busy.error.contains("it answered with status 503"))
    #expect(seen.withLock { $0.count } == 5)
    await server.stop(grace: .zero)
  }

  @Test("a list that a server continues at the same place for ever ends with the reason")
  func endlessList() async throws {
    let seen = Mutex(0)
    let server = try HTTPServer(configuration: HTTPServer.Configuration()) { request in
      seen.withLock { $0 += 1 }
      let list = request.path.hasSuffix("bundles") ? "bundles" : "missions"
      return HTTPResponse(
        status: 200, body: .bytes(Array(#"{"\#(list)":[],"next":"tour"}"#.utf8)))
    }
    for list in ["mission", "bundle"] {
      let ended = try await ChildProcess.run(
        try Executables.ferryd(),
        [
          list, "list", "--space", "notes", "--server", "http://127.0.0.1:\(server.port)/",
          "--token", "secret",
        ])
      #expect(ended.status == .exited(1), "\(ended.output)")
      #expect(ended.error.contains("the server's list does not end"), "\(ended.error)")
    }
    #expect(seen.withLock { $0 } == 4)
    await server.stop(grace: .zero)
  }

  @Test("content is sent to a server in parts, and served in ranges")
  func remote() async throws {
    try await makeTour()
    let big = (0..<400_000).map { "line \($0)\n" }.joined()
    try write("tour/big.txt", big)
    let (child, port) = try await daemon.serve()
    let admin = try await daemon.token("admin")
    let reader = try await daemon.token("reader")
    let server = ["--server", "http://127.0.0.1:\(port)", "--space", "notes"]
    func remote(_ arguments: String...) async throws -> ChildProcess.Finished {
      try await ChildProcess.run(
        try Executables.ferryd(), ["mission"] + arguments + server + ["--token", admin])
    }
    #expect(try await remote("publish", tour).output.hasPrefix("published tour version 1"))
    #expect(try await remote("publish", tour).output.hasPrefix("unchanged tour version 1"))
    let shown = try await remote("show", "tour", "--json")
    #expect(shown.output.contains(#""path":"big.txt""#))
    let refused = try await ChildProcess.run(
      try Executables.ferryd(), ["mission", "publish", tour, "--token", reader] + server)
    #expect(refused.status == .exited(4) && refused.error.contains("--role admin"))
    try await ranges(of: Array(big.utf8), port, token: reader)
    #expect(try await remote("retract", "tour").output == "retracted tour\n")
    #expect(try await remote("list", "--json").output == "{\"missions\":[]}\n")
    child.send(SIGTERM)
    #expect(try await child.exitStatus() == .exited(0))
  }

  private func ranges(of content: [UInt8], _ port: UInt16, token: String) async throws {
    let hash = ContentHash(of: content)
    func get(
      _ method: String = "GET", _ headers: [String: String] = [:]
    ) async throws -> ServiceSocket.Answer {
      try await ServiceSocket.exchange(
        port, method, "/v1/blobs/\(hash)",
        headers: headers.merging(["Authorization": "Bearer \(token)"]) { mine, _ in mine })
    }
    let whole = try await get()
    #expect(whole.status == 200 && whole.body == content)
    #expect(whole.headers["etag"] == "\"\(hash)\"")
    let head = try await get("HEAD")
    #expect(head.status == 200 && head.body.isEmpty)
    #expect(head.headers["content-length"] == String(content.count))
    let part = try await get(
      "GET", ["Range": "bytes=100-199", "If-Range": "\"\(hash)\""])
    #expect(part.status == 206 && part.body == Array(content[100..<200]))
    #expect(part.headers["content-range"] == "bytes 100-199/\(content.count)")
    let other = try await get("GET", ["Range": "bytes=100-199", "If-Range": "\"other\""])
    #expect(other.status == 200 && other.body.count == content.count)
    let suffix = try await get("GET", ["Range": "bytes=-7"])
    #expect(suffix.status == 206 && suffix.body == Array(content.suffix(7)))
    let past = try await get("GET", ["Range": "bytes=99999999-"])
    #expect(past.status == 416)
    #expect(past.headers["content-range"] == "bytes */\(content.count)")
    let known = try await get("GET", ["If-None-Match": "\"\(hash)\""])
    #expect(known.status == 304 && known.body.isEmpty)
    // Sent bytes are counted right after; manifests were read as well.
    let sent = 2 * content.count + 107
    let counted = try await eventually("\(sent) bytes to be counted") {
      let metrics = try await ServiceSocket.exchange(port, "GET", "/metrics").text
      let name = #"ferry_http_response_bytes_total{route="/v1/blobs/{sha256}"} "#
      let line = try #require(metrics.split(separator: "\n").first { $0.hasPrefix(name) })
      let count = try #require(Int(line.dropFirst(name.count)))
      return count < sent ? nil : count
    }
    #expect(counted < sent + content.count)
  }

  @Test("a killed publisher leaves nothing visible, and a repeat completes")
  func killed() async throws {
    try await makeTour()
    for number in 0..<40 {
      try write("tour/file\(number).txt", String(repeating: "content \(number) ", count: 50_000))
    }
    try write("tour/large.txt", String(repeating: "content ", count: 1 << 21))
    // The last of it takes longer than all the waits of the test.
    let last = tour + "/last.bin"
    _ = FileManager.default.createFile(atPath: last, contents: nil)
    #expect(truncate(last, 8 << 30) == 0)
    let child = try ChildProcess(
      try Executables.ferryd(),
      ["mission", "publish", tour, "--space", "notes", "--data", daemon.data])
    let blobs = daemon.data + "/blobs"
    // It is killed while it copies: some content is there, and the record is not.
    func isThere() -> Bool {
      // A file may disappear while the folder is listed.
      let paths = try? FileManager.default.subpathsOfDirectory(atPath: daemon.data)
      return (paths ?? []).count {
        $0.hasPrefix("blobs/") && $0.utf8.count > 64 && !$0.hasPrefix("blobs/incoming")
      } >= 1
    }
    try await eventually("some content", from: child) { isThere() }
    child.send(SIGKILL)
    _ = try await child.exitStatus()
    let listed = try await run("list", "--space", "notes", "--json")
    #expect(listed.output == "{\"missions\":[]}\n")
    try FileManager.default.removeItem(atPath: last)
    let repeated = try await run("publish", tour, "--space", "notes")
    #expect(repeated.output.hasPrefix("published tour version 1: 43 items"))
    #expect(
      try await run("show", "tour", "--space", "notes", "--verify").status == .exited(0))
    _ = try await run("collect", "--keep", "0s")
    #expect(try FileManager.default.contentsOfDirectory(atPath: blobs + "/incoming").isEmpty)
    #expect(
      try await run("show", "tour", "--space", "notes", "--verify").status == .exited(0))
  }

  @Test("concurrent commands make one key, and a store in a database needs --blobs")
  func key() async throws {
    #expect(try await daemon.run("space", "create", "notes").status == .exited(0))
    let keys = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<4 { group.addTask { try await run("key").output } }
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    #expect(keys.count == 1 && keys.first?.count == 45)
    let database = ["--database", try PostgresCluster.shared().createDatabase()]
    let empty = try await ChildProcess.run(
      try Executables.ferryd(), ["mission", "key"] + database)
    #expect(empty.status == .exited(1) && empty.error.contains("contains no store of Ferry"))
    let made = try await ChildProcess.run(
      try Executables.ferryd(), ["space", "create", "notes"] + database)
    #expect(made.status == .exited(0), "it was not made by the one before: \(made.error)")
    let none = try await ChildProcess.run(
      try Executables.ferryd(), ["mission", "key"] + database)
    #expect(none.status == .exited(2) && none.error.contains("--blobs"))
  }
}

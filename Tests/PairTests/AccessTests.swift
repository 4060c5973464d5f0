import Ferry
import FerryCompression
import FerryTestSupport
import Foundation
import Testing

/// Access rights, as the commands report them.
@Suite(.hangLimit)
struct AccessTests {
  @Test("a wrong token is refused with a clear message and exit status 4")
  func wrongToken() async throws {
    let server = try await Server.start()
    let right = try await server.token("writer")
    let device = try Device()
    let wrong = right.dropLast(4) + (right.hasSuffix("AAAA") ? "BBBB" : "AAAA")
    for token in ["nonsense", String(wrong)] {
      let refused = try await device.ferry(
        "init", "--server", server.url, "--space", Device.space, "--token", token, exits: 4)
      #expect(refused.error.contains("a valid token is needed"))
      #expect(refused.error.contains("next: get a token"))
    }
    let none = try await device.ferry(
      "--json", "init", "--server", server.url, "--space", Device.space, exits: 4)
    let lines = try JSONLine.all(none.output)
    #expect(lines.last?.object("error").text("code") == "unauthorized")
    #expect(try await device.status().server == nil)
    try await device.ferry(
      "init", "--server", server.url, "--space", Device.space, "--token", right)
    #expect(try await device.status().server?.url == server.url)
  }

  @Test("a token is read from standard input, and from a file")
  func secretly() async throws {
    let server = try await Server.start()
    let right = try await server.token("writer")
    let place = ["init", "--server", server.url, "--space", Device.space]
    let piped = try Device()
    let made = try await ChildProcess.run(
      try Executables.ferry(), ["--replica", piped.path] + place + ["--token-file", "-"],
      directory: piped.directory.url, input: right + "\n")
    #expect(made.status == .exited(0), "\(made.error)")
    #expect(!made.output.contains(right) && !made.error.contains(right))
    let open = piped.directory.file("token")
    try Data(right.utf8).write(to: open)
    chmod(open.path, 0o644)
    let warned = try await piped.ferry("join", "demo2", "--token-file", open.path)
    #expect(warned.error.contains("all users of this machine may read the token"))
    #expect(!warned.error.contains(right))
  }

  @Test("a reader's token can pull but not push, and its local writes stay pending")
  func reader() async throws {
    let server = try await Server.start()
    let writer = try await Device.joined(server.url, token: try await server.token("writer"))
    let reader = try await Device.joined(server.url, token: try await server.token("reader"))
    try await writer.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await writer.exchange()
    #expect(try await reader.exchange("pull").pulled == 1)
    try await reader.write("UPDATE notes SET n = 2 WHERE id = 'a'")
    let refused = try await reader.ferry("push", exits: 4)
    #expect(refused.error.contains("the token does not allow this"))
    #expect(refused.error.contains("reader"))
    #expect(try await reader.status().pending == 1)
    #expect(try await server.head(of: "demo", as: writer) == 1)
    let listed = try await reader.ferry("pending")
    #expect(listed.output.contains("update"))
    #expect(listed.error.contains("never sent with the present token"))
    #expect(listed.error.contains("reader") && listed.error.contains("ferry undo OPERATION"))
    #expect(try await reader.ferry("status").output.contains("1, never sent with this token"))
    // Another token sends them, and the notice is gone.
    let replica = try await reader.open()
    try await replica.connect(
      to: server.url, space: "demo", token: try await server.token("writer"))
    #expect(try await reader.exchange().pushed == 1)
    #expect(try await replica.status().writesRefused == nil)
    #expect(try await reader.ferry("pending").error == "")
  }

  @Test(
    "a reader's edits leave the queue with an undo, and the next sync shows the server's values")
  func readersUndo() async throws {
    let server = try await Server.start()
    let writer = try await Device.joined(server.url, token: try await server.token("writer"))
    let reader = try await Device.joined(server.url, token: try await server.token("reader"))
    try await writer.write("INSERT INTO notes VALUES ('a', 'x', 1), ('b', 'y', 1)")
    try await writer.exchange()
    try await reader.exchange("pull")
    for sql in [
      "UPDATE notes SET body = 'mine', n = 7 WHERE id = 'a'", "DELETE FROM notes WHERE id = 'b'",
      "INSERT INTO notes VALUES ('c', 'z', 1)",
    ] {
      try await reader.write(sql)
    }
    try await reader.ferry("batch", "notes", "--where", "body = 'z'", "--set", "body=batched")
    try await reader.ferry("sync", exits: 4)
    try await writer.write("UPDATE notes SET n = n + 1")
    try await writer.exchange()
    let listed = try JSONLine.all(try await reader.ferry("--json", "history").output)
    for operation in listed.compactMap({ $0.text("operation") }) {
      let undone = try await reader.ferry("undo", operation)
      #expect(undone.output.contains("undone; the operation was never sent, and the next sync"))
    }
    #expect(try await reader.ferry("status").output.contains("pending       0\n"))
    try await reader.ferry("sync")
    #expect(try await reader.rows() == [["a", "x", 2], ["b", "y", 2]])
    #expect(try await reader.rows() == writer.rows())
  }

  @Test("a token of one space opens no other, and a deleted space is reported as such")
  func spaces() async throws {
    let server = try await Server.start()
    let token = try await server.token("admin", space: "mine")
    let device = try Device()
    let other = try await device.ferry(
      "init", "--server", server.url, "--space", "yours", "--token", token, exits: 4)
    #expect(other.error.contains("the token is not for space yours"))
    let bad = try await device.ferry(
      "init", "--server", server.url, "--space", "no/name", "--token", token, exits: 1)
    #expect(bad.error.contains("there is no such space"))

    let (old, new) = (try await Server.start(), try await Server.start())
    let proxy = try TCPProxy(to: old.port)
    let joined = try await Device.joined(proxy.url)
    try await joined.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    proxy.retarget(to: new.port)
    proxy.cutAll()
    let gone = try await joined.ferry("sync", exits: 1)
    #expect(gone.error.contains("there is no such space"))
    #expect(try await joined.status().pending == 1)
  }

  @Test("if the server is down, the command exits with 3 and the local writes stay pending")
  func serverDown() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await server.stop()
    for command in ["push", "pull", "sync"] {
      let failed = try await device.ferry(command, exits: 3)
      #expect(failed.error.contains("the server could not be reached"))
      #expect(failed.error.contains("your changes are safe"))
    }
    try await server.start()
    #expect(try await device.exchange().pushed == 1)
  }

  @Test("a response of another server than Ferry is reported as such")
  func wrongAddress() async throws {
    let device = try Device()
    let page = "<html><body>It works!</body></html>"
    for status in ["200 OK", "404 Not Found"] {
      let web = try CannedServer(
        saying: "HTTP/1.1 \(status)\r\nContent-Type: text/html\r\nConnection: close\r\n"
          + "Content-Length: \(page.utf8.count)\r\n\r\n\(page)")
      let refused = try await device.ferry(
        "init", "--server", "http://127.0.0.1:\(web.port)", "--space", "demo", exits: 1)
      #expect(refused.error.contains("is not from a Ferry server"), "\(status)")
    }
    let usage = try await device.ferry(
      "init", "--server", "ftp://127.0.0.1", "--space", "demo", exits: 2)
    #expect(usage.error.contains("no http:// or https://"))
    let mail = try CannedServer(saying: "220 mail.example ESMTP ready\r\n")
    let strange = try await device.ferry(
      "init", "--server", "http://127.0.0.1:\(mail.port)", "--space", "demo", exits: 3)
    #expect(strange.error.contains("the server could not be reached"))
    #expect(try await device.status().server == nil)
  }

  @Test(
    "the server answers malformed, oversized and bomb-compressed messages and survives",
    arguments: StoreKind.allCases)
  func hostileMessages(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind)
    let device = try await Device.joined(server.url)
    let packets = "\(server.url)/v1/spaces/\(Device.space)/packets"
    let zeros = [UInt8](repeating: 0x20, count: 64 << 20)
    let cases: [(name: String, coding: String?, body: [UInt8], status: Int, code: String)] = [
      ("not JSON", nil, Array("{\"device\":".utf8), 400, "malformed_message"),
      ("no packet", nil, Array("[]".utf8), 400, "malformed_message"),
      ("deep", nil, [UInt8](repeating: 0x5B, count: 100_000), 400, "malformed_message"),
      ("not UTF-8", nil, [0x22, 0xFF, 0x22], 400, "malformed_message"),
      ("empty", nil, [], 400, "malformed_message"),
      (
        "oversized", nil, [UInt8](repeating: 0x20, count: (8 << 20) + 1), 413, "limit_exceeded"
      ),
      ("zstd bomb", "zstd", try ContentCoding.zstd.compress(zeros), 413, "limit_exceeded"),
      ("gzip bomb", "gzip", try ContentCoding.gzip.compress(zeros), 413, "limit_exceeded"),
      ("broken zstd", "zstd", Array("{}".utf8), 400, "malformed_message"),
      ("unknown coding", "br", Array("{}".utf8), 415, "unsupported_coding"),
    ]
    for it in cases {
      var headers: TransportHeaders = ["Content-Type": "application/json"]
      if let coding = it.coding { headers["Content-Encoding"] = coding }
      let answer = try await Wire.send(.post, packets, headers: headers, body: it.body)
      #expect(answer.status == it.status, "\(it.name): \(answer.text)")
      #expect(answer.problem == it.code, "\(it.name): \(answer.text)")
    }
    let strange: [(TransportMethod, String, Int, String)] = [
      (.get, "/v1/spaces/nowhere", 404, "unknown_space"),
      (.get, "/v1/spaces/nowhere/changes", 404, "unknown_space"),
      (.get, "/v1/spaces/\(Device.space)/changes?cursor=1.2", 400, "invalid_cursor"),
      (.get, "/v1/spaces/\(Device.space)/changes?limit=0", 400, "malformed_message"),
      (.delete, "/v1/spaces/\(Device.space)/packets", 405, "method_not_allowed"),
      (.get, "/v2", 404, "not_found"),
    ]
    for (method, path, status, code) in strange {
      let answer = try await Wire.send(method, server.url + path)
      #expect((answer.status, answer.problem) == (status, code), "\(path): \(answer.text)")
    }
    #expect(try await Wire.send(.get, "\(server.url)/readyz").status == 200)
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    #expect(try await device.exchange().pushed == 1)
    #expect(try await server.head() == 1)
  }
}

extension Server {
  /// Returns the head as a device's token lets it be seen.
  fileprivate func head(of space: String, as device: Device) async throws -> Int64 {
    let token = try FileCredentialStore().credential(of: device.path)?.token ?? ""
    let answer = try await Wire.send(
      .get, "\(url)/v1/spaces/\(space)", headers: ["Authorization": "Bearer \(token)"])
    return Int64(answer.json["head"] as? String ?? "") ?? -1
  }
}

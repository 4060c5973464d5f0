import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// `ferryd` as a process, on the embedded store.
@Suite(.hangLimit)
struct DaemonCommandTests {
  private let daemon: EmbeddedDaemon

  init() throws { daemon = try EmbeddedDaemon() }

  @Test("the server reports its address and that it is open, serves, and ends with 0 on SIGTERM")
  func servesAndStops() async throws {
    let (child, port) = try await daemon.serve()
    #expect(child.error.contains("(embedded store in \(daemon.data), open: no tokens exist)"))
    _ = try await ServiceSocket.exchange(port, "PUT", "/v1/spaces/notes")
    let packet = Packet.serviceSample(1, operations: 3)
    let posted = try await ServiceSocket.exchange(
      port, "POST", "/v1/spaces/notes/packets", body: packet.encoded())
    #expect(posted.status == 200)
    let again = try await ServiceSocket.exchange(
      port, "POST", "/v1/spaces/notes/packets", body: packet.encoded())
    let receipt = try PacketAnswer(decoding: again.body, limits: .standard).receipt
    #expect(receipt.status == .duplicate)
    #expect(receipt.sequences == 1...3)
    let stream = try ServiceSocket(port: port)
    try await stream.send("GET", "/v1/spaces/notes/events")
    _ = try await stream.read(until: #""head":"3""#)
    child.send(SIGTERM)
    _ = try await stream.readToEnd()
    #expect(try await child.exitStatus() == .exited(0))
  }

  @Test("acknowledged operations survive a kill of the server")
  func survivesKill() async throws {
    let (child, port) = try await daemon.serve()
    _ = try await ServiceSocket.exchange(port, "PUT", "/v1/spaces/notes")
    let posted = try await ServiceSocket.exchange(
      port, "POST", "/v1/spaces/notes/packets",
      body: Packet.serviceSample(1, operations: 3).encoded())
    #expect(posted.status == 200)
    child.send(SIGKILL)
    #expect(try await child.exitStatus() == .killed(signal: SIGKILL))
    let (second, newPort) = try await daemon.serve()
    let page = try await ServiceSocket.exchange(newPort, "GET", "/v1/spaces/notes/changes")
    let count = try page.body.withUnsafeBytes { bytes in
      try PageReader.read(bytes, limits: .standard) { _ in }
    }.count
    #expect(count == 3)
    second.send(SIGINT)
    #expect(try await second.exitStatus() == .exited(0))
  }

  @Test("a token made beside a running server closes it, and admits only its holder")
  func tokenBesideServer() async throws {
    let (child, port) = try await daemon.serve()
    #expect(try await ServiceSocket.exchange(port, "PUT", "/v1/spaces/notes").status == 200)
    let writer = try await daemon.token("writer")
    #expect(writer.wholeMatch(of: /ferry_[A-Za-z0-9_-]{43}/) != nil)
    #expect(try await ServiceSocket.exchange(port, "GET", "/v1/spaces/notes").status == 401)
    let bearer = ["Authorization": "Bearer \(writer)"]
    let allowed = try await ServiceSocket.exchange(
      port, "GET", "/v1/spaces/notes", headers: bearer)
    #expect(try SpaceInfo(decoding: allowed.body).role == .writer)
    let refused = try await ServiceSocket.exchange(
      port, "PUT", "/v1/spaces/notes", headers: bearer)
    #expect(refused.status == 403)
    #expect(!child.error.contains(writer.dropFirst(6)))
    child.send(SIGTERM)
    #expect(try await child.exitStatus() == .exited(0))
  }

  @Test("tokens are listed without their secrets, and revoked by their ID or their secret")
  func tokens() async throws {
    let reader = try await daemon.token("reader")
    let admin = try await daemon.token("admin", space: "other")
    let listed = try await daemon.run("token", "list")
    #expect(listed.output.contains("reader"))
    #expect(listed.output.contains("other"))
    #expect(!listed.output.contains(reader) && !listed.output.contains(admin))
    let id = try #require(
      listed.output.split(separator: "\n").first { $0.contains("reader") }?.split(separator: " ")
        .first)
    #expect(try await daemon.run("token", "revoke", String(id)).status == .exited(0))
    #expect(try await daemon.run("token", "revoke", admin).status == .exited(0))
    let unknown = try await daemon.run("token", "revoke", admin)
    #expect(unknown.status == .exited(1))
    #expect(!unknown.error.contains(admin))
    #expect(try await daemon.run("token", "list", "--json").output == "{\"tokens\":[]}\n")
    let (child, _) = try await daemon.serve()
    #expect(child.error.contains("tokens required"), "once there were tokens, they are needed")
    child.send(SIGTERM)
    #expect(try await child.exitStatus() == .exited(0))
  }

  @Test("a second server on the same data is refused with the reason")
  func secondServer() async throws {
    let (child, _) = try await daemon.serve()
    let second = try await daemon.run("serve", "--listen", "127.0.0.1:0")
    #expect(second.status == .exited(1))
    #expect(second.error.contains("another ferryd serves it (process \(child.processID))"))
    child.send(SIGTERM)
    #expect(try await child.exitStatus() == .exited(0))
  }

  @Test("an invalid configuration is refused with a reason and the next step")
  func refusals() async throws {
    let open = try await daemon.run("serve", "--listen", "0.0.0.0:0")
    #expect(open.status == .exited(1))
    #expect(open.error.contains("--insecure"))
    #expect(open.error.contains("ferryd token create"))
    let wrong = try await daemon.run("serve", "--listen", "example.org:80")
    #expect(wrong.status == .exited(2))
    let url = try await ChildProcess.run(
      try Executables.ferryd(), ["serve", "--database", "mysql://user:secret@db/x"])
    #expect(url.status == .exited(2))
    #expect(!url.error.contains("secret"))
    let away = try await ChildProcess.run(
      try Executables.ferryd(),
      [
        "serve", "--start-wait", "300ms", "--database",
        "postgres://user:secret@127.0.0.1:\(try FreePort.refused())/x",
      ])
    #expect(away.status == .exited(1))
    #expect(away.error.contains("cannot be reached"))
    #expect(!away.error.contains("secret"))
    let file = daemon.directory.file("file")
    try Data().write(to: file)
    let notDirectory = try await ChildProcess.run(
      try Executables.ferryd(), ["migrate", "--data", file.path])
    #expect(notDirectory.status == .exited(1))
    #expect(notDirectory.error.contains("a file has this name"))
  }

  @Test("arguments override the environment, and a database overrides a directory in it")
  func precedence() async throws {
    let port = try FreePort.refused()
    let url = "postgres://127.0.0.1:\(port)/x"
    let environment = [
      "FERRY_DATABASE": url, "FERRY_LISTEN_URL": url, "FERRY_READ_DATABASE": url,
      "FERRY_WORKER_DATABASE": url, "FERRY_DATA": daemon.data, "FERRY_START_WAIT": "0",
    ]
    let fromEnvironment = try await ChildProcess.run(
      try Executables.ferryd(), ["migrate"], environment: environment)
    #expect(fromEnvironment.error.contains("PostgreSQL at 127.0.0.1:\(port)/x"))
    let typed = try await ChildProcess.run(
      try Executables.ferryd(), ["migrate", "--data", daemon.data], environment: environment)
    #expect(typed.status == .exited(0))
    let both = try await daemon.run("migrate", "--database", url)
    #expect(both.status == .exited(2))
  }

  @Test("spaces are created and listed, and the health check detects a missing server")
  func spacesAndHealth() async throws {
    #expect(try await daemon.run("space", "create", "b").output == "b at 0\n")
    #expect(try await daemon.run("space", "create", "a", "--json").status == .exited(0))
    #expect(try await daemon.run("space", "create", "not a name").status == .exited(2))
    let listed = try await daemon.run("space", "list", "--json")
    #expect(listed.output.hasPrefix("{\"spaces\":[{\"space\":\"a\",\"epoch\":"))
    #expect(try await daemon.run("migrate").status == .exited(0))
    let (child, port) = try await daemon.serve()
    let url = "http://127.0.0.1:\(port)/readyz"
    #expect(try await daemon.run("healthcheck", "--url", url).status == .exited(0))
    child.send(SIGTERM)
    #expect(try await child.exitStatus() == .exited(0))
    #expect(try await daemon.run("healthcheck", "--url", url).status == .exited(1))
  }
}

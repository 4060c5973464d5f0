import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// `ferryd feed`, beside a running server and through one.
@Suite("The feed of a space", .hangLimit)
struct DaemonFeedTests {
  private let daemon: EmbeddedDaemon

  init() throws { daemon = try EmbeddedDaemon() }

  /// The parts of a line that these tests look at.
  private struct Line: Decodable, Equatable {
    struct Operation: Decodable, Equatable {
      var table: String
      var record: String
      var kind: String
      var data: [String: String]?
    }

    var cursor: String
    var transaction: String
    var device: String
    var user: String?
    var operations: [Operation]
  }

  private static func lines(_ output: String) throws -> [Line] {
    try output.split(separator: "\n").map {
      try JSONDecoder().decode(Line.self, from: Data($0.utf8))
    }
  }

  private func send(_ packet: Packet, _ port: UInt16, _ headers: [String: String] = [:])
    async throws
  {
    let answer = try await ServiceSocket.exchange(
      port, "POST", "/v1/spaces/notes/packets", headers: headers, body: packet.encoded())
    #expect(answer.status == 200)
  }

  @Test(
    "a feed has each transaction as one line, and a killed reader continues behind its last line")
  func resume() async throws {
    #expect(try await daemon.run("space", "create", "notes").status == .exited(0))
    let (server, port) = try await daemon.serve()
    #expect(try await daemon.run("feed", "notes").output == "")
    try await send(.serviceSample(1, operations: 3), port)
    let reader = try ChildProcess(
      try Executables.ferryd(),
      ["feed", "notes", "--follow", "--interval", "20ms", "--data", daemon.data])
    let first = try await reader.line { $0.contains("1-2") }
    try await send(.serviceSample(2), port)
    let second = try await reader.line { $0.contains("2-0") }
    reader.send(SIGKILL)
    #expect(try await reader.exitStatus() == .killed(signal: SIGKILL))
    #expect(reader.output == first + "\n" + second + "\n")
    try await send(.serviceSample(3, operations: 2), port)
    let known = try Self.lines(reader.output)
    #expect(known.map(\.operations.count) == [3, 1])
    #expect(known.map(\.transaction) == ["1", "4"])
    #expect(known[1].user == "anonymous")
    #expect(
      known[1].operations == [
        Line.Operation(table: "tasks", record: "2-0", kind: "insert", data: ["title": "hello"])
      ])
    let address = ["--server", "http://127.0.0.1:\(port)"]
    for source in [[], address] {
      let rest = try await ChildProcess.run(
        try Executables.ferryd(),
        ["feed", "notes", "--since", known[1].cursor, "--data", daemon.data] + source)
      let lines = try Self.lines(rest.output)
      #expect(lines.map { $0.operations.map(\.record) } == [["3-0", "3-1"]], "\(rest.error)")
    }
    let follower = try ChildProcess(
      try Executables.ferryd(), ["feed", "notes", "--follow", "--interval", "20ms"] + address)
    _ = try await follower.line { $0.contains("3-1") }
    follower.send(SIGTERM)
    #expect(try await follower.exitStatus() == .exited(0))
    server.send(SIGTERM)
    #expect(try await server.exitStatus() == .exited(0))
  }

  @Test("a place that the history has no longer is refused with the next step")
  func expired() async throws {
    #expect(try await daemon.run("space", "create", "notes").status == .exited(0))
    let (server, port) = try await daemon.serve()
    for seed: UInt64 in 1...3 { try await send(.serviceSample(seed), port) }
    let lines = try Self.lines(try await daemon.run("feed", "notes").output)
    #expect(lines.count == 3)
    _ = try await daemon.run("space", "prune", "notes", "--older-than", "0s")
    let old = try await daemon.run("feed", "notes", "--since", lines[0].cursor)
    #expect(old.status == .exited(1))
    #expect(old.error.contains("the cursor is at 1, but the history begins after 3"))
    #expect(old.error.contains("next: copy the records again"))
    let remote = try await ServiceSocket.exchange(
      port, "GET", "/v1/spaces/notes/feed?since=\(lines[0].cursor)")
    #expect(remote.status == 410 && Problem(decoding: remote.body)?.code == .cursorExpired)
    #expect(try await daemon.run("feed", "notes", "--since", lines[2].cursor).output == "")
    try await send(.serviceSample(4), port)
    #expect(try Self.lines(try await daemon.run("feed", "notes").output).count == 1)
    server.send(SIGTERM)
    #expect(try await server.exitStatus() == .exited(0))
  }

  @Test("a hostile cursor is refused, and a revoked right ends a follower")
  func refused() async throws {
    let (server, port) = try await daemon.serve()
    let admin = try await daemon.token("admin")
    let writer = try await daemon.token("writer")
    try await send(.serviceSample(1), port, ["Authorization": "Bearer \(writer)"])
    for text in [
      "x", "1.2.3", "\u{1B}[2J", "'; DROP TABLE operations; --",
      String(repeating: "9", count: 5_000),
    ] {
      let answer = try await daemon.run("feed", "notes", "--since", text)
      #expect(answer.status == .exited(2) && !answer.error.contains("\u{1B}"), "\(text)")
    }
    let address = "http://127.0.0.1:\(port)"
    func feed(_ token: String, _ more: String...) throws -> ChildProcess {
      try ChildProcess(
        try Executables.ferryd(), ["feed", "notes", "--server", address] + more,
        environment: ["FERRY_TOKEN": token])
    }
    #expect(try await feed(writer).exitStatus() == .exited(4))
    let follower = try feed(admin, "--follow", "--interval", "20ms")
    _ = try await follower.line { $0.contains("1-0") }
    #expect(try await daemon.run("token", "revoke", admin).status == .exited(0))
    #expect(try await follower.exitStatus() == .exited(4))
    #expect(follower.error.contains("a valid token is needed"))
    server.send(SIGTERM)
    #expect(try await server.exitStatus() == .exited(0))
  }
}

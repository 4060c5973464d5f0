import FerryTestSupport
import Foundation
import Testing

/// `ferry download` against a real nginx.
@Suite("The command that downloads a file", .hangLimit, .enabled(if: NginxFileServer.isAvailable))
struct DownloadCommandTests {
  private let folder: TemporaryDirectory
  private let content: [UInt8]

  init() throws {
    folder = try TemporaryDirectory()
    var state: UInt64 = 3
    content = (0..<6_000_000).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
  }

  private func server(rate: Int) async throws -> NginxFileServer {
    let server = try await NginxFileServer(rate: rate)
    try server.replace(content, modified: 1_000_000_000)
    return server
  }

  @discardableResult
  private func ferry(
    _ arguments: String..., exits code: Int32 = 0,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> ChildProcess.Finished {
    let finished = try await ChildProcess.run(
      try Executables.ferry(), ["download"] + arguments, directory: folder.url)
    #expect(
      finished.status == .exited(code), "\(finished.error)\(finished.output)",
      sourceLocation: sourceLocation)
    return finished
  }

  private func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
  }

  @Test("a killed download continues, and fetches almost nothing twice")
  func killed() async throws {
    let server = try await server(rate: 0)
    let proxy = try TCPProxy(to: server.port)
    let url = "\(proxy.url)/file"
    let kills = 3
    for number in 1...kills {
      let held = proxy.trap(.answer, after: 1_200_000, .hold)
      defer { held.cut() }
      let child = try ChildProcess(
        try Executables.ferry(), ["download", url, "film", "--json"], directory: folder.url)
      let bound = number * 1_000_000
      _ = try await child.line { line in
        guard let field = line.range(of: "\"bytesDone\":") else { return false }
        return Int(line[field.upperBound...].prefix { $0.isNumber }) ?? 0 >= bound
      }
      child.send(SIGKILL)
      #expect(try await child.exitStatus() == .killed(signal: SIGKILL))
      #expect(try names().contains("film.ferry-part"))
      #expect(try !names().contains("film"))
    }
    let last = try await ferry(url, "film", "--json")
    #expect(try Array(Data(contentsOf: folder.file("film"))) == content)
    #expect(try names() == ["film"])
    let lines = last.output.split(separator: "\n")
    #expect(lines.last?.contains("\"event\":\"done\"") == true)
    let log = try await server.log { status, bytes in status == 206 && bytes > 0 }
    #expect(log.last?.status == 206)
    let done = try #require(lines.last?.range(of: "\"bytesFetched\":"))
    let fetched = Int(lines.last?[done.upperBound...].prefix { $0.isNumber } ?? "") ?? 0
    #expect(fetched <= content.count - kills * 1_000_000 + 400_000, "\(fetched) bytes")
  }

  @Test("a checksum accepts its file, and rejects another without leaving anything")
  func checksum() async throws {
    let server = try await server(rate: 0)
    let sum = try await ChildProcess.run(
      URL(filePath: "/usr/bin/sha256sum"), ["-"], input: String(repeating: "a", count: 10))
    let wrong = String(sum.output.prefix(64))
    let failed = try await ferry(server.url, "film", "--sha256", wrong, exits: 1)
    #expect(failed.error.contains("not the expected one"))
    // No user knows of a manifest.
    #expect(failed.error.contains("SHA-256 differs from the expected one"), "\(failed.error)")
    #expect(try names().isEmpty)
    let done = try await ferry(server.url, "film")
    let right = try #require(done.output.split(separator: " ").last).trimmingCharacters(
      in: .whitespacesAndNewlines)
    #expect(right.count == 64)
    // nginx logs a request after the answer; the answer to a later one proves the first entry.
    _ = try await Wire.send(.head, server.url)
    let requests = try server.log().count { $0.bytes > 0 }
    let again = try await ferry(server.url, "film", "--sha256", right)
    #expect(again.output.contains(right))
    _ = try await Wire.send(.head, server.url)
    #expect(try server.log().count { $0.bytes > 0 } == requests)
    try await ferry(server.url, "film", exits: 2)
    try await ferry(server.url, "film", "--force", "--sha256", right)
  }

  @Test("without PATH the file gets the address's name; usage errors are explained")
  func names() async throws {
    let server = try await server(rate: 0)
    try await ferry(server.url + "?page=2")
    #expect(try names() == ["file"])
    #expect(try await ferry("ftp://x/y", exits: 2).error.contains("http"))
    for address in ["http://", "http://x:99999/y", "http://x/a b"] {
      #expect(try await ferry(address, exits: 2).error.contains("is not a web address"))
    }
    #expect(try await ferry(server.url, "x", "--sha256", "12", exits: 2).error.contains("SHA-256"))
    try await ferry(server.url, "x", "--limit-rate", "0", exits: 2)
    let missing = try await ferry(server.url + "x", "x", exits: 1)
    #expect(missing.error.contains("next: check the address"))
    #expect(try names() == ["file"])
  }

  @Test("without a connection it gives up with status 3; a limit slows it down")
  func offlineAndLimit() async throws {
    let port = try FreePort.refused()
    let offline = try await ferry("http://127.0.0.1:\(port)/f", "--wait", "300ms", exits: 3)
    #expect(offline.error.contains("run the same command again"))
    let server = try await server(rate: 0)
    let start = ContinuousClock.now
    try await ferry(server.url, "slow", "--limit-rate", "3MB")
    #expect(start.duration(to: .now) > .milliseconds(900))
  }

  @Test("a server that always breaks off at the same byte is given up like one that is away")
  func alwaysCut() async throws {
    let (listener, port) = try LoopbackSocket.listen()
    defer { close(listener) }
    let thread = Thread {
      var count = 0
      while let connection = LoopbackSocket.accept(on: listener) {
        count += 1
        var request = [UInt8](repeating: 0, count: 4_096)
        _ = recv(connection, &request, request.count, 0)
        // Without the end after many requests, the command would run until the test's limit.
        let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n".utf8)
        let body = Array((count < 200 ? "abc" : "abcd").utf8)
        _ = Foundation.send(
          connection, answer + body, answer.count + body.count, Int32(MSG_NOSIGNAL))
        close(connection)
      }
    }
    thread.start()
    defer { shutdown(listener, Int32(SHUT_RDWR)) }
    let failed = try await ferry("http://127.0.0.1:\(port)/f", "--wait", "300ms", exits: 3)
    #expect(failed.error.contains("run the same command again"), "\(failed.error)")
  }

  @Test("a terminal shows a bar that grows and goes; without one there is no bar")
  func progressBar() async throws {
    let server = try await server(rate: 2_000_000)
    let terminal = try TerminalProcess(
      try Executables.ferry(), ["download", server.url, "film"], directory: folder.url)
    #expect(try await terminal.exitStatus() == .exited(0))
    #expect(try Array(Data(contentsOf: folder.file("film"))) == content)
    // Each drawing has the name, the filled part and the rest of the bar, and the percentage.
    let drawings = terminal.screen.matches(of: #/film  (█*)[▏▎▍▌▋▊▉]?(░*) +(\d+)%/#)
    let filled = drawings.map(\.1.count)
    #expect(filled.count > 1 && filled == filled.sorted(), "\(terminal.screen.debugDescription)")
    #expect(Set(filled).count > 1)
    #expect(drawings.allSatisfy { $0.1.count + $0.2.count <= 30 })
    // At the end the cursor goes back to the bar's line, and everything below is cleared.
    let rest = try #require(terminal.screen.components(separatedBy: "\u{1B}[1A\r\u{1B}[J").last)
    #expect(rest.contains("SHA-256") && !rest.contains("░"), "the bar is gone at the end")
    let plain = try await ferry(server.url, "plain")
    #expect(!plain.error.contains("░") && !plain.output.contains("█"))
  }

  @Test("a second process is refused while the first one downloads")
  func second() async throws {
    let server = try await server(rate: 100_000)
    let child = try ChildProcess(
      try Executables.ferry(), ["download", server.url, "film", "--json"], directory: folder.url)
    _ = try await child.line { $0.contains("progress") }
    let refused = try await ferry(server.url, "film", exits: 3)
    #expect(refused.error.contains("another process"))
    child.send(SIGINT)
    #expect(try await child.exitStatus() != .exited(0))
    #expect(try names().contains("film.ferry-part"))
  }
}

import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// The answers of a real `ferryd` to pages of other origins, as bytes on the wire.
@Suite("A server for pages of other origins", .hangLimit)
struct DaemonOriginTests {
  private static let origin = "https://app.example"
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory(prefix: "ferryd-origin") }

  private func run(_ arguments: String...) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(
      try Executables.ferryd(), arguments + ["--data", directory.file("data").path])
  }

  /// Starts a server with a token for everything. Returns the process and the port.
  private func serve(_ arguments: [String] = []) async throws -> (ChildProcess, UInt16, String) {
    let made = try await run("token", "create", "--all-spaces", "--role", "admin")
    #expect(made.status == .exited(0), "\(made.error)")
    let child = try ChildProcess(
      try Executables.ferryd(),
      ["serve", "--listen", "127.0.0.1:0", "--data", directory.file("data").path] + arguments)
    let ready = try await child.line { $0.contains("listening on http://") }
    let port = try #require(ready.firstMatch(of: #/127\.0\.0\.1:(\d+)/#).flatMap { UInt16($0.1) })
    return (child, port, made.output.trimmingCharacters(in: .whitespacesAndNewlines))
  }

  private func allowed(_ answer: ServiceSocket.Answer) -> String? {
    answer.headers["access-control-allow-origin"]
  }

  @Test("answers and problems of every kind name the declared origin, and vary by it")
  func everyAnswer() async throws {
    let (child, port, token) = try await serve(["--allow-origin", Self.origin])
    defer { child.send(SIGTERM) }
    let page = ["Origin": Self.origin, "Authorization": "Bearer \(token)"]
    let space = "/v1/spaces/notes"
    func send(
      _ method: String, _ target: String, _ more: [String: String] = [:], _ body: [UInt8] = []
    ) async throws -> ServiceSocket.Answer {
      try await ServiceSocket.exchange(
        port, method, target, headers: page.merging(more) { $1 }, body: body)
    }
    let content = Array("content".utf8)
    let upload = "\(space)/blobs/\(String(repeating: "a", count: 64))"
    let bare = ["Authorization": "none"]
    let answers: [(Int, ServiceSocket.Answer)] = [
      (200, try await send("PUT", space)),
      (200, try await send("GET", "\(space)/changes")),
      (200, try await send("POST", "\(space)/packets", [:], Packet.serviceSample(1).encoded())),
      (200, try await send("GET", "/healthz")),
      // Before a handler: the token, the length, the coding, and a target without a handler.
      (401, try await send("POST", "\(space)/packets", bare, content)),
      (401, try await send("GET", space, bare)),
      (413, try await send("POST", "\(space)/packets", ["Content-Length": "99999999999"])),
      (415, try await send("POST", "\(space)/packets", ["Content-Encoding": "br"], content)),
      (400, try await send("GET", "/v1/spaces/%FF")),
      (400, try await send("GET", space, ["Content-Length": "+0"])),
      (400, try await send("POST", "\(space)/packets", [:], content)),
      (404, try await send("GET", "/v1/nothing")),
      (405, try await send("DELETE", "\(space)/changes")),
      (409, try await send("GET", "\(space)/changes?cursor=0000000000000001.9.9")),
      (422, try await send("PUT", upload, [:], content)),
    ]
    for (status, answer) in answers {
      #expect(answer.status == status, "\(answer.text)")
      #expect(allowed(answer) == Self.origin, "\(status): \(answer.headers)")
      #expect(answer.headers["vary"]?.contains("Origin") == true, "\(status)")
      #expect(answer.headers["access-control-expose-headers"]?.contains("Retry-After") == true)
      #expect(answer.headers["access-control-allow-credentials"] == nil)
      if status >= 400 {
        #expect(answer.headers["content-type"] == "application/problem+json", "\(status)")
      }
    }
  }

  @Test("streams of events, uploads and content carry the headers")
  func streams() async throws {
    let (child, port, token) = try await serve(["--allow-origin", Self.origin])
    defer { child.send(SIGTERM) }
    let page = ["Origin": Self.origin, "Authorization": "Bearer \(token)"]
    _ = try await ServiceSocket.exchange(port, "PUT", "/v1/spaces/notes", headers: page)
    let stream = try ServiceSocket(port: port)
    try await stream.send("GET", "/v1/spaces/notes/events", headers: page)
    let head = try await stream.read(until: "event: head")
    #expect(head.contains("Access-Control-Allow-Origin: \(Self.origin)\r\n"))
    // SHA-256 of the empty content.
    let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    let upload = "/v1/spaces/notes/blobs/\(hash)"
    let state = try await ServiceSocket.exchange(port, "HEAD", upload, headers: page)
    #expect(allowed(state) == Self.origin)
    let content = try await ServiceSocket.exchange(port, "GET", "/v1/blobs/\(hash)", headers: page)
    #expect(allowed(content) == Self.origin)
  }

  @Test("a preflight needs no token, and another origin's preflight is refused with the reason")
  func preflights() async throws {
    let (child, port, _) = try await serve([
      "--allow-origin", "HTTPS://App.Example:443", "--allow-origin", "http://127.0.0.1:8000",
    ])
    defer { child.send(SIGTERM) }
    func ask(_ origin: String) async throws -> ServiceSocket.Answer {
      try await ServiceSocket.exchange(
        port, "OPTIONS", "/v1/spaces/notes/packets",
        headers: [
          "Origin": origin, "Access-Control-Request-Method": "POST",
          "Access-Control-Request-Headers": "authorization,content-type",
        ])
    }
    for origin in [Self.origin, "http://127.0.0.1:8000"] {
      let answer = try await ask(origin)
      #expect(answer.status == 204 && answer.body.isEmpty)
      #expect(allowed(answer) == origin)
      #expect(answer.headers["access-control-allow-methods"] == "POST")
      #expect(answer.headers["access-control-max-age"] == "7200")
    }
    let refused = try await ask("https://evil.example")
    #expect(refused.status == 403 && allowed(refused) == nil)
    #expect(refused.text.contains("--allow-origin"))
  }

  @Test("an undeclared origin gets no header, with and without declared ones")
  func undeclared() async throws {
    for options in [[], ["--allow-origin", Self.origin]] {
      let (child, port, token) = try await serve(options)
      let headers = ["Origin": "https://evil.example", "Authorization": "Bearer \(token)"]
      let answer = try await ServiceSocket.exchange(
        port, "PUT", "/v1/spaces/notes", headers: headers)
      #expect(answer.status == 200, "a program may send any Origin")
      #expect(allowed(answer) == nil)
      child.send(SIGTERM)
      #expect(try await child.exitStatus() == .exited(0))
    }
  }

  @Test("a value that is no origin ends the start with the reason and the next step")
  func refusedOptions() async throws {
    for value in ["*", "null", "https://app.example/", "app.example", "https://*.example"] {
      let finished = try await run("serve", "--listen", "127.0.0.1:0", "--allow-origin", value)
      #expect(finished.status == .exited(2))
      #expect(finished.error.contains("'\(value)' is not an origin"), "\(finished.error)")
      #expect(finished.error.contains("next:"))
    }
  }
}

import FerryCryptography
import FerryTestSupport
import Foundation
import Testing

/// A server reads the keys and the log level again at SIGHUP.
@Suite("SIGHUP", .hangLimit)
struct ReloadTests {
  private static let issuer = "https://issuer.example"
  private static let audience = "ferry"

  /// A shared secret in a set of keys (RFC 7517 §6.4).
  private struct Key {
    let name: String
    let secret: [UInt8]

    init(_ name: String) {
      self.name = name
      secret = (0..<32).map { _ in .random(in: 0 ... .max) }
    }

    var document: String {
      #"{"keys":[{"kty":"oct","kid":"\#(name)","alg":"HS256","k":"\#(Self.text(secret))"}]}"#
    }

    /// Returns a token valid for an hour (RFC 7519).
    func token() -> String {
      let header = #"{"alg":"HS256","typ":"JWT","kid":"\#(name)"}"#
      let end = Int(Date.now.timeIntervalSince1970) + 3_600
      let claims =
        #"{"iss":"\#(issuer)","aud":"\#(audience)","sub":"ada","exp":\#(end),"#
        + #""ferry":{"notes":"admin"}}"#
      let signed = Self.text(Array(header.utf8)) + "." + Self.text(Array(claims.utf8))
      return signed + "." + Self.text(HMACSHA256.code(for: Array(signed.utf8), key: secret))
    }

    private static func text(_ bytes: [UInt8]) -> String {
      Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        .replacing("=", with: "")
    }
  }

  private func status(_ token: String, _ server: Server) async throws -> Int {
    try await Wire.send(
      .put, "\(server.url)/v1/spaces/notes", headers: ["Authorization": "Bearer \(token)"]
    ).status
  }

  @Test("the server reads its issuer's keys again at once, and goes on serving")
  func keys() async throws {
    let folder = try TemporaryDirectory()
    let file = folder.file("keys.json")
    let (old, new) = (Key("old"), Key("new"))
    try Data(old.document.utf8).write(to: file)
    let server = try await Server.start(
      .embedded, "--jwt-issuer", Self.issuer, "--jwt-audience", Self.audience, "--jwks", file.path)
    #expect(try await status(old.token(), server) == 200)
    try Data(new.document.utf8).write(to: file)
    server.send(SIGHUP)
    try await eventually("the log to report it", from: server) {
      server.log.contains("are read again")
    }
    #expect(try await status(new.token(), server) == 200)
    #expect(try await status(old.token(), server) == 401)

    try Data("no keys".utf8).write(to: file)
    server.send(SIGHUP)
    try await eventually("the log to report the fault", from: server) {
      server.log.contains("the issuer's keys cannot be read")
    }
    #expect(try await status(new.token(), server) == 200, "the last good keys stay")
    #expect(try await server.stop() == .exited(0))
  }

  /// The lines of a log with a message.
  private func lines(_ server: Server, _ message: String) -> Int {
    server.log.split(separator: "\n").count { $0.contains("\"message\":\"\(message)\"") }
  }

  @Test("the server reads its log level again, and keeps it if the file has none")
  func level() async throws {
    let folder = try TemporaryDirectory()
    let file = folder.file("level")
    try Data("warning\n".utf8).write(to: file)
    let server = try await Server.start(
      .embedded, "--log-level", "debug", "--log-level-file", file.path)
    _ = try await Wire.send(.get, "\(server.url)/healthz")
    try Data("debug\n".utf8).write(to: file)
    server.send(SIGHUP)
    try await eventually("the log to report the level", from: server) {
      lines(server, "the log level is read again") == 1
    }
    #expect(lines(server, "request") == 0, "the file overrides the option")
    _ = try await Wire.send(.get, "\(server.url)/healthz")
    try await eventually("the request in the log", from: server) { lines(server, "request") == 1 }

    for content in ["verbose", "", "debug info", String(repeating: "debug ", count: 100)] {
      let before = lines(server, "the log level cannot be read and stays as it is")
      try Data(content.utf8).write(to: file)
      server.send(SIGHUP)
      try await eventually("the log to report the fault", from: server) {
        lines(server, "the log level cannot be read and stays as it is") == before + 1
      }
    }
    try FileManager.default.removeItem(at: file)
    server.send(SIGHUP)
    try await eventually("the log to name the file", from: server) {
      server.log.contains("\(file.path): No such file or directory")
    }
    _ = try await Wire.send(.get, "\(server.url)/healthz")
    try await eventually("the request in the log", from: server) { lines(server, "request") == 2 }
    #expect(try await server.stop() == .exited(0))
  }

  @Test("a server does not start with a log level that does not exist")
  func wrongLevel() async throws {
    let folder = try TemporaryDirectory()
    let file = folder.file("level")
    try Data("loud\n".utf8).write(to: file)
    let finished = try await ChildProcess.run(
      try Executables.ferryd(),
      [
        "serve", "--listen", "127.0.0.1:0", "--data", folder.file("data").path,
        "--log-level-file", file.path,
      ])
    #expect(finished.status != .exited(0))
    #expect(finished.error.contains("has to contain one word: error, warning, info, debug"))
  }
}

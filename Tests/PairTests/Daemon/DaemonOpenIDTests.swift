import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// `ferryd` with the tokens of a real OpenID Connect provider.
@Suite(
  "Tokens of a real OpenID Connect provider", .hangLimit,
  .enabled(if: OpenIDProvider.isExpected, "needs glewlwyd, which not every system packages"))
struct DaemonOpenIDTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory(prefix: "ferry-openid-test") }

  /// A server with a trusted issuer.
  private struct Server {
    let process: ChildProcess
    let port: UInt16

    func ask(
      _ token: String, _ method: String = "GET", _ space: String = "list-7"
    ) async throws -> ServiceSocket.Answer {
      try await ServiceSocket.exchange(
        port, method, "/v1/spaces/\(space)", headers: ["Authorization": "Bearer \(token)"])
    }

    func role(_ token: String, in space: String = "list-7") async throws -> Role? {
      let answer = try await ask(token, "GET", space)
      return answer.status == 200 ? try SpaceInfo(decoding: answer.body).role : nil
    }

    /// Asks until the server admits a token; until then each response has `status`.
    func admits(
      _ token: String, after status: Int, method: String = "GET"
    ) async throws {
      try await eventually("the server to admit the token", from: process) {
        let answer = try await ask(token, method)
        if answer.status == 200 { return true }
        try #require(answer.status == status, "\(answer.text)")
        // Fewer requests than a server takes from one address.
        try await Task.sleep(for: .milliseconds(200))
        return false
      }
    }

    /// Returns the reason why a token is not valid.
    func refusal(_ token: String) async throws -> String {
      let answer = try await ask(token)
      #expect(answer.status == 401)
      return answer.text
    }
  }

  private func serve(
    _ issuer: OpenIDProvider.Issuer, audience: String = OpenIDProvider.resource
  ) async throws -> Server {
    let process = try ChildProcess(
      try Executables.ferryd(),
      [
        "serve", "--listen", "127.0.0.1:0", "--data", directory.file(UUID().uuidString).path,
        "--jwt-issuer", issuer.issuer, "--jwt-audience", audience, "--jwks", issuer.jwksUri,
        "--auth-failures", "0",
      ])
    let ready = try await process.line { $0.contains("listening on http://127.0.0.1:") }
    let digits = ready.split(separator: "http://127.0.0.1:")[1].prefix { $0.isNumber }
    return Server(process: process, port: try #require(UInt16(digits)))
  }

  /// Returns the claims with other roles, under the signature of the former ones.
  private func tampered(_ token: String) throws -> String {
    var parts = token.split(separator: ".").map(String.init)
    let claims = String(decoding: try #require(Base64URL.decode(parts[1].utf8)), as: UTF8.self)
    try #require(claims.contains("=writer"))
    parts[1] = Base64URL.encode(Array(claims.replacing("=writer", with: "=admin").utf8))
    return parts.joined(separator: ".")
  }

  @Test(
    "tokens grant the roles of their claim, and only tokens for this server are accepted",
    arguments: OpenIDProvider.Key.Algorithm.allCases)
  func roles(_ algorithm: OpenIDProvider.Key.Algorithm) async throws {
    let provider = try await OpenIDProvider()
    let key = try await OpenIDProvider.Key.make(algorithm)
    let issuer = try await provider.addIssuer("main", key)
    let server = try await serve(issuer)
    let service = try await provider.clientToken(from: issuer)
    for space in ["list-7", "notes", "list-8"] {
      #expect(try await server.ask(service, "PUT", space).status == 200)
    }
    #expect(try await server.role(service) == .admin)
    let ada = try await provider.tokens(from: issuer)
    for token in [ada.accessToken, try await provider.refresh(ada, from: issuer)] {
      #expect(try await server.role(token) == .writer)
      #expect(try await server.role(token, in: "notes") == .reader)
      #expect(try await server.ask(token, "GET", "list-8").status == 403)
      #expect(try await server.ask(token, "PUT").status == 403)
    }

    #expect(try await server.refusal(tampered(ada.accessToken)).contains("signature is wrong"))
    let elsewhere = try await provider.tokens(from: issuer, for: OpenIDProvider.otherResource)
    #expect(try await server.refusal(elsewhere.accessToken).contains("audience (aud)"))
    #expect(try await server.refusal(#require(ada.idToken)).contains("audience (aud)"))
    _ = try await server.refusal(#require(ada.refreshToken))
    let sameKey = try await provider.addIssuer("second", key)
    let second = try await provider.tokens(from: sameKey)
    #expect(try await server.refusal(second.accessToken).contains("issuer (iss)"))
    let otherKey = try await provider.addIssuer("third", .make(algorithm))
    let third = try await provider.tokens(from: otherKey)
    // Claims are compared before the signature, which costs more.
    #expect(try await server.refusal(third.accessToken).contains("issuer (iss)"))
    try await provider.addUser("eve", grants: [])
    let eve = try await provider.tokens(of: "eve", from: issuer)
    let grantless = try await server.ask(eve.accessToken)
    #expect(grantless.status == 403 && grantless.text.contains("you are not a member"))
  }

  @Test("ID tokens are admitted if the client is the audience, with a list as their claim")
  func idTokens() async throws {
    let provider = try await OpenIDProvider()
    let issuer = try await provider.addIssuer("main", .make(.es256))
    let server = try await serve(issuer, audience: "app")
    let ada = try await provider.tokens(from: issuer)
    let token = try #require(ada.idToken)
    #expect(try await server.ask(token, "GET", "list-7").status == 404, "nobody made it yet")
    #expect(try await server.ask(token, "GET", "list-8").status == 403)
    #expect(try await server.refusal(ada.accessToken).contains("audience (aud)"))
  }

  @Test("a key that the provider replaces is refused as soon as its successor is known")
  func rotation() async throws {
    let provider = try await OpenIDProvider()
    let issuer = try await provider.addIssuer("main", .make(.es256))
    let server = try await serve(issuer)
    let service = try await provider.clientToken(from: issuer)
    #expect(try await server.ask(service, "PUT").status == 200)
    let old = try await provider.tokens(from: issuer).accessToken
    #expect(try await server.role(old) == .writer)
    try await provider.rotate(issuer, to: .make(.rs256))
    let new = try await provider.tokens(from: issuer).accessToken
    try await server.admits(new, after: 401)
    #expect(try await server.role(new) == .writer)
    #expect(try await server.refusal(old).contains("the issuer has no key"))
    withExtendedLifetime(provider) {}
  }

  @Test("while the provider is down, known keys stay valid; a server without keys waits for it")
  func outage() async throws {
    let provider = try await OpenIDProvider()
    let issuer = try await provider.addIssuer("main", .make(.rs256))
    let server = try await serve(issuer)
    let service = try await provider.clientToken(from: issuer)
    let fresh = try await provider.tokens(from: issuer).accessToken
    // The server does not know the next key.
    try await provider.rotate(issuer, to: .make(.rs256))
    let nextService = try await provider.clientToken(from: issuer)
    let next = try await provider.tokens(from: issuer).accessToken
    try await provider.stop()
    let late = try await serve(issuer)
    #expect(try await late.ask(nextService).status == 503)
    // Until the server has tried to fetch the keys again, and failed.
    try await eventually("the server to look for the keys", from: server.process) {
      _ = try await server.refusal(next)
      try await Task.sleep(for: .milliseconds(200))
      return server.process.error.contains("the issuer's keys cannot be read")
    }
    #expect(try await server.ask(service, "PUT").status == 200)
    #expect(try await server.role(fresh) == .writer)
    try await provider.start()
    try await late.admits(nextService, after: 503, method: "PUT")
    #expect(try await late.role(next) == .writer)
    withExtendedLifetime(provider) {}
  }
}

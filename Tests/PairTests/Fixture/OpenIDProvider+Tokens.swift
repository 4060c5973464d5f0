import FerryTestSupport
import Foundation
import Testing

/// Tokens from the provider's token endpoint, obtained as an application obtains them.
extension OpenIDProvider {
  /// The response of a token endpoint (RFC 6749 §5.1).
  struct Tokens: Decodable {
    let accessToken: String
    let idToken: String?
    let refreshToken: String?
  }

  /// Obtains tokens by the authorization code flow (OpenID Connect Core §3.1), for access to one
  /// resource (RFC 8707).
  func tokens(
    of user: String = "ada", from issuer: Issuer, for resource: String = OpenIDProvider.resource
  ) async throws -> Tokens {
    let session = try await session(user)
    _ = try await call(
      "PUT", "auth/grant/app", headers: session,
      body: Self.json(["scope": "openid sync other"]))
    let question = Self.form([
      "response_type": "code", "client_id": "app", "redirect_uri": Self.redirection,
      "scope": "openid sync other", "resource": resource, "nonce": "nonce", "state": "state",
      "g_continue": "",
    ])
    let redirect = try await call(
      "GET", "\(issuer.name)/auth?\(question)", headers: session, status: 302)
    let location = try #require(redirect.headers["location"])
    let code = try #require(
      URLComponents(string: location)?.queryItems?.first { $0.name == "code" }?.value,
      "\(location)")
    return try await ask(
      issuer,
      ["grant_type": "authorization_code", "code": code, "redirect_uri": Self.redirection])
  }

  /// Obtains another access token (RFC 6749 §6).
  func refresh(_ tokens: Tokens, from issuer: Issuer) async throws -> String {
    let refresh = try #require(tokens.refreshToken)
    return try await ask(issuer, ["grant_type": "refresh_token", "refresh_token": refresh])
      .accessToken
  }

  /// Obtains an access token of the client itself (RFC 6749 §4.4).
  func clientToken(from issuer: Issuer) async throws -> String {
    try await ask(
      issuer,
      ["grant_type": "client_credentials", "scope": "sync", "resource": Self.resource]
    ).accessToken
  }

  private func ask(_ issuer: Issuer, _ form: [String: String]) async throws -> Tokens {
    let answer = try await call(
      "POST", "\(issuer.name)/token",
      headers: [
        "Authorization": "Basic " + Data("app:secret".utf8).base64EncodedString(),
        "Content-Type": "application/x-www-form-urlencoded",
      ], body: Array(Self.form(form).utf8))
    return try Self.decode(answer)
  }

  private static func form(_ fields: [String: String]) -> String {
    fields.sorted { $0.key < $1.key }.map { name, value in
      let encoded = value.addingPercentEncoding(withAllowedCharacters: .alphanumerics)
      return "\(name)=\(encoded ?? "")"
    }.joined(separator: "&")
  }
}

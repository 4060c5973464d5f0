import Ferry
import FerryCommandLine
import FerryPlatform
import Foundation

/// Finds out after a failure whether the server's address has the wrong scheme: `https` for a
/// server without TLS, or `http` for a server with it.
///
/// It sends one request with each scheme to the address, without a token and without the name of
/// the space.
struct SchemeCheck {
  /// The longest wait for each answer.
  private static let timeout = Duration.seconds(5)

  let transport: any Transport

  /// Runs `work`. If it fails because of the address's scheme, the error names the other scheme.
  func explained<T: Sendable>(
    url: String, _ work: () async throws -> T
  ) async throws -> T {
    do {
      return try await work()
    } catch {
      throw await explaining(error, url: url)
    }
  }

  /// Returns an error about the scheme if it is the reason, and the given error otherwise.
  ///
  /// - Parameter url: the server's address as given by the user.
  func explaining(_ error: any Error, url: String) async -> any Error {
    guard let failure = error as? ReplicaError, Self.mayBeScheme(failure),
      let address = SchemeAddress(url)
    else { return error }
    let hasTLS = await speaksTLS(address)
    if address.isSecure {
      guard !hasTLS, await answersPlainly(address) else { return error }
    } else {
      guard hasTLS else { return error }
    }
    return Self.failure(address)
  }

  /// Returns true if a failure may come from the wrong scheme. A server that breaks a handshake, or
  /// closes the connection without an answer, looks like a failing network.
  static func mayBeScheme(_ error: ReplicaError) -> Bool {
    switch error {
    case .offline, .untrusted: true
    case .unexpectedAnswer(let status, _): status == 400
    default: false
    }
  }

  private func speaksTLS(_ address: SchemeAddress) async -> Bool {
    do throws(TransportError) {
      _ = try await transport.send(Self.request(address.secure))
      return true
    } catch {
      return error.isOfTLS
    }
  }

  private func answersPlainly(_ address: SchemeAddress) async -> Bool {
    guard let response = try? await transport.send(Self.request(address.plain)) else {
      return false
    }
    return Self.isPlainAnswer(status: response.status)
  }

  /// Returns true if an answer to plain http comes from a server without TLS. A server with TLS
  /// answers a plain request with 400 or 426, or redirects it.
  static func isPlainAnswer(status: Int) -> Bool {
    status != 400 && status != 426 && !(300...399).contains(status)
  }

  private static func request(_ url: String) -> TransportRequest {
    var request = TransportRequest(.get, url, timeout: timeout, connectTimeout: timeout)
    request.redirects = .withinOrigin
    request.responseLimit = 1 << 20
    return request
  }

  private static func failure(_ address: SchemeAddress) -> CommandFailure {
    if address.isSecure {
      return CommandFailure(
        "the server answered without TLS", why: "\(address.secure) speaks plain http",
        next:
          "use \(address.plain) (other machines on the way can then read the token), or add TLS to "
          + "the server", code: "server_without_tls")
    }
    return CommandFailure(
      "the server answers with TLS only", why: "\(address.plain) speaks https",
      next: "use \(address.secure)", code: "server_with_tls")
  }
}

/// A server's address with both schemes, at one port; pure.
struct SchemeAddress: Equatable {
  let isSecure: Bool
  /// With `https://`.
  let secure: String
  /// With `http://`.
  let plain: String

  /// Reads an absolute address; `nil` for anything else. Leaves out the query and the user.
  init?(_ url: String) {
    guard var parts = URLComponents(string: url), let host = parts.host, !host.isEmpty,
      let scheme = parts.scheme?.lowercasedASCII, scheme == "http" || scheme == "https"
    else { return nil }
    isSecure = scheme == "https"
    parts.port = parts.port ?? (isSecure ? 443 : 80)
    (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
    func text(_ scheme: String, usual port: Int) -> String? {
      var parts = parts
      parts.scheme = scheme
      if parts.port == port { parts.port = nil }
      return parts.string
    }
    guard let secure = text("https", usual: 443), let plain = text("http", usual: 80) else {
      return nil
    }
    (self.secure, self.plain) = (secure, plain)
  }
}

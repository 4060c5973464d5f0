import FerryProtocol

/// A server and the token for the space.
package struct ServerAccess: Sendable {
  package let address: ServerAddress
  /// The stored token; `nil` if the server is open, or the application fetches tokens.
  let stored: String?
  /// Tokens fetched by the application.
  var fetched: TokenKeeper?

  init(address: ServerAddress, token: String?) { (self.address, stored) = (address, token) }

  /// Returns true if both have one server and one stored token.
  func isSame(as other: ServerAccess) -> Bool {
    address == other.address && stored == other.stored
  }

  /// Returns the token for a request; `nil` if the server is open.
  ///
  /// - Parameter rejected: a token rejected by the server.
  package func token(otherThan rejected: String? = nil) async throws -> String? {
    try await fetched?.token(otherThan: rejected) ?? stored
  }
}

/// The source of a replica's bearer token.
///
/// ```swift
/// let replica = try await Replica.open(
///   "notes.db", server: "https://sync.example.org", space: "team",
///   token: .refreshed { rejected in try await session.accessToken(otherThan: rejected) })
/// ```
public struct TokenSource: Sendable {
  enum Kind: Sendable {
    case stored
    case fixed(String?)
    case refreshed(TokenFetcher)
  }

  let kind: Kind

  /// Returns the keeper of an application's tokens for a space; `nil` for the other sources.
  func keeper(for address: ServerAddress) -> TokenKeeper? {
    guard case .refreshed(let fetcher) = kind else { return nil }
    return TokenKeeper(address: address, fetcher: fetcher)
  }

  /// The token in the ``CredentialStore`` for the file; no token if there is none.
  public static let stored = TokenSource(kind: .stored)

  /// No token, for an open server. Removes a stored token.
  public static let none = TokenSource(kind: .fixed(nil))

  /// A token without expiry. The replica stores it in the ``CredentialStore``, instead of another
  /// one.
  public static func fixed(_ token: String) -> TokenSource { TokenSource(kind: .fixed(token)) }

  /// Tokens with an expiry, such as those of OpenID Connect. The replica asks before the first
  /// request, and again when the server rejects a token. It keeps them in memory only, sends them
  /// only to the server and the space given with the source, and removes a stored token.
  ///
  /// One call of the closure runs at a time, for all requests and all spaces with this value,
  /// joined spaces included. It runs to the end, also if the waiting requests are cancelled: later
  /// ones use the result. After a rejection with 401, each request is sent once more, with the next
  /// token.
  ///
  /// ```swift
  /// let source = TokenSource.refreshed { rejected in
  ///   try await session.accessToken(otherThan: rejected)
  /// }
  /// ```
  ///
  /// - Parameter fetch: gets the rejected token, or `nil` if the replica has none yet, and returns
  ///   1 to 16,384 bytes of visible ASCII. If it throws a ``ReplicaError`` or a network error, the
  ///   sync fails with this error; after ``ReplicaError/offline(_:)`` a watch tries again later.
  ///   Any other error becomes ``ReplicaError/tokenMissing(_:)``.
  public static func refreshed(
    by fetch: @escaping @Sendable (_ rejected: String?) async throws -> String
  ) -> TokenSource {
    TokenSource(kind: .refreshed(TokenFetcher(fetch: fetch)))
  }
}

/// The place from which a replica takes its bearer token.
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

  /// The token that the ``CredentialStore`` keeps for the file; no token if it keeps none.
  public static let stored = TokenSource(kind: .stored)

  /// No token, for an open server. Removes a stored token.
  public static let none = TokenSource(kind: .fixed(nil))

  /// A token that stays valid. The replica keeps it in its ``CredentialStore``, in place of another
  /// one.
  public static func fixed(_ token: String) -> TokenSource { TokenSource(kind: .fixed(token)) }

  /// Tokens that expire, such as those of OpenID Connect. The replica asks before its first
  /// request, and again when the server rejects a token. It keeps them in memory only, sends them to
  /// no other server and space than those that were given with the source, and removes a stored
  /// token.
  ///
  /// One call of the closure runs at a time, for all requests and all spaces that use this value,
  /// those of joined spaces included. It runs to its end, also if the requests that wait for it are
  /// cancelled: later ones use the result. Each request that the server rejects with 401 is sent
  /// once more, with the next token.
  ///
  /// ```swift
  /// let source = TokenSource.refreshed { rejected in
  ///   try await session.accessToken(otherThan: rejected)
  /// }
  /// ```
  ///
  /// - Parameter fetch: gets the rejected token, or `nil` if the replica has none yet, and returns
  ///   1 to 16,384 bytes of visible ASCII. If it throws a ``ReplicaError`` or
  ///   a network error, the sync fails with that; after ``ReplicaError/offline(_:)`` a watch tries
  ///   again later. Any other error becomes ``ReplicaError/tokenMissing(_:)``.
  public static func refreshed(
    by fetch: @escaping @Sendable (_ rejected: String?) async throws -> String
  ) -> TokenSource {
    TokenSource(kind: .refreshed(TokenFetcher(fetch: fetch)))
  }
}

/// The place from which a replica takes its bearer token.
///
/// ```swift
/// let replica = try await Replica.open(
///   "notes.db", server: "https://sync.example.org", space: "team",
///   token: .refreshed { rejected in try await session.accessToken(otherThan: rejected) })
/// ```
public struct TokenSource: Sendable {
  enum Kind: Sendable {
    case fixed(String?)
    case refreshed(TokenKeeper.Fetch)
  }

  let kind: Kind

  /// No token, for an open server.
  public static let none = TokenSource(kind: .fixed(nil))

  /// A token that stays valid. The replica keeps it in its ``CredentialStore``.
  public static func fixed(_ token: String) -> TokenSource { TokenSource(kind: .fixed(token)) }

  /// Tokens that expire, such as those of OpenID Connect. The replica asks before its first
  /// request, and again when the server rejects a token. It keeps them in memory only, and sends
  /// them to no other server and space than those that were given with the source.
  ///
  /// - Parameter fetch: gets the rejected token, or `nil` if the replica has none yet. One call
  ///   runs at a time. It may throw ``ReplicaError/offline(_:)`` if no token can be had at present;
  ///   a sync then fails in the same way, and a watch tries again later. With any other error, both
  ///   fail with ``ReplicaError/tokenMissing(_:)``.
  public static func refreshed(
    by fetch: @escaping @Sendable (_ rejected: String?) async throws -> String
  ) -> TokenSource {
    TokenSource(kind: .refreshed(fetch))
  }
}

import FerryProtocol

/// Keeps the tokens of replicas apart from their databases, so that a database, a copy or a backup
/// of it holds no token. ``FileCredentialStore`` is the default; an app may give another one, such
/// as one over a key chain.
///
/// Functions may block, and are called on a thread of the replica's own.
///
/// ```swift
/// let replica = try await Replica.open("notes.db", credentials: KeyChainStore())
/// ```
public protocol CredentialStore: Sendable {
  /// Returns the credential of the replica at `path`, or `nil` if there is none.
  ///
  /// - Throws: when it cannot be read, with the reason.
  func credential(of path: String) throws -> Credential?

  /// Stores a credential in place of the former one; `nil` removes it.
  func store(_ credential: Credential?, of path: String) throws
}

/// A token and the one server and space that may receive it. Another address in the database does
/// not get the token.
public struct Credential: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  /// The server's address, as the replica was connected to it.
  public var server: String
  /// The space.
  public var space: SpaceName
  /// The bearer token.
  public var token: String

  /// Creates a credential from its parts.
  public init(server: String, space: SpaceName, token: String) {
    self.server = server
    self.space = space
    self.token = token
  }

  /// A description without the token, which must not appear in logs.
  public var description: String { "a token for space \(space) on \(server)" }

  /// A mirror without the token.
  public var customMirror: Mirror { Mirror(self, children: ["server": server, "space": space]) }
}

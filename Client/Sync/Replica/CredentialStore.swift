import FerryProtocol

/// Stores the tokens of replicas apart from their databases: a database, a copy or a backup of it
/// holds no token. ``FileCredentialStore`` is the default; you may pass another one, such as one
/// over a key chain.
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

  /// Stores a credential instead of the former one; `nil` removes it.
  func store(_ credential: Credential?, of path: String) throws
}

/// A token and the only server and space that may receive it. Another address in the database does
/// not get the token.
public struct Credential: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  /// The server's address, as the replica was connected to it.
  public var server: String
  /// The space.
  public var space: SpaceName
  /// The bearer token.
  public var token: String

  /// Creates a credential.
  public init(server: String, space: SpaceName, token: String) {
    self.server = server
    self.space = space
    self.token = token
  }

  /// A description without the token: it must not appear in logs.
  public var description: String { "a token for space \(space) on \(server)" }

  /// A mirror without the token.
  public var customMirror: Mirror { Mirror(self, children: ["server": server, "space": space]) }
}

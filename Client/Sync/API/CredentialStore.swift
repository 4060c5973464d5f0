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

  /// Keeps a credential in the place of another one; nil removes it.
  func keep(_ credential: Credential?, of path: String) throws
}

/// A token and the one place that it may be sent to: an address that somebody wrote into the
/// database does not get it.
public struct Credential: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  /// The server's address, as the replica was connected to it.
  public var server: String
  /// The space.
  public var space: SpaceName
  /// The bearer token.
  public var token: String

  /// A credential from its parts.
  public init(server: String, space: SpaceName, token: String) {
    self.server = server
    self.space = space
    self.token = token
  }

  /// Without the token, which must not come into logs.
  public var description: String { "a token for space \(space) on \(server)" }

  /// Without the token as well.
  public var customMirror: Mirror { Mirror(self, children: ["server": server, "space": space]) }
}

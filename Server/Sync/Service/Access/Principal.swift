import FerryProtocol

/// The identity behind a request, after its credential was checked.
///
/// Ownership of devices, quotas, rate limits and the audit log refer to principals, never to
/// tokens. One principal may use several tokens at the same time.
package struct Principal: Sendable, Hashable, CustomStringConvertible {
  /// The limit of ``id``, in bytes of UTF-8.
  package static let byteCountMax = 512

  /// Stable text, 1 to 512 bytes: `token:` and the token's identifier, `owner:` and the name of a
  /// token's owner, or `jwt:` with issuer and subject.
  package let id: String

  /// Returns `nil` if the text is empty or longer than 512 bytes.
  package init?(_ id: String) {
    guard !id.isEmpty, id.utf8.count <= Self.byteCountMax else { return nil }
    self.id = id
  }

  private init(known id: String) { self.id = id }

  /// Every sender, as long as no token was created.
  package static let anonymous = Principal(known: "anonymous")

  /// Returns whether another principal may use a device of this one from now on: only if the device
  /// is from before there were tokens.
  func leaves(deviceTo other: Principal) -> Bool { self == other || self == .anonymous }

  /// Creates the holder of a token of Ferry's: its owner, and without one the token itself. Both
  /// stay when the secret is replaced.
  package init(_ token: StoredToken) {
    self.init(known: token.owner.map { "owner:\($0)" } ?? "token:\(token.id)")
  }

  /// Creates a user of the server's own command line.
  package init(commandLine user: String) {
    self.init(known: "local:\(String(user.prefix(64)))")
  }

  package static func == (one: Principal, other: Principal) -> Bool {
    one.id.utf8.elementsEqual(other.id.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    for byte in id.utf8 { hasher.combine(byte) }
  }

  package var description: String { id }
}

/// A principal and its role in the space that it asked for.
package struct Admission: Sendable, Equatable {
  package let principal: Principal
  package let role: Role
  /// From then on the credential is refused: milliseconds since 1970, `nil` for never.
  package let expiry: Int64?
  /// Whether the principal may administer the server itself.
  package let isServerAdmin: Bool
  /// Whether the server was open when it last looked. The caller has to look again.
  package let assumesOpenServer: Bool

  package init(
    _ principal: Principal, _ role: Role, expiry: Int64? = nil, isServerAdmin: Bool = false,
    assumesOpenServer: Bool = false
  ) {
    self.principal = principal
    self.role = role
    self.expiry = expiry
    self.isServerAdmin = isServerAdmin
    self.assumesOpenServer = assumesOpenServer
  }
}

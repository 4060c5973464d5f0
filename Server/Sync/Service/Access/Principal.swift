import FerryProtocol

/// The identity behind a request, after a check of the credential.
///
/// Ownership of devices and the audit log refer to principals, never to tokens. One principal may
/// use several tokens at the same time. Quotas, rates and shares of the server refer to the
/// ``account``: a principal may make tokens of new principals.
package struct Principal: Sendable, Hashable, CustomStringConvertible {
  /// The limit of an account's ``id``, in bytes of UTF-8. The id of a token made by a principal is
  /// longer by the token's own part.
  package static let byteCountMax = 512

  /// Stable text: `owner:` and the name of a token's owner, `jwt:` with issuer and subject, or
  /// `token:` and the token's identifier. If another principal made the token, `@` and the account
  /// follow.
  package let id: String

  /// Returns `nil` if the text is empty, or longer than a principal's.
  package init?(_ id: String) {
    guard !id.isEmpty, id.utf8.count <= Self.byteCountMax + Self.madeCount else { return nil }
    self.id = id
  }

  private init(known id: String) { self.id = id }

  /// Every sender, as long as no token was created.
  package static let anonymous = Principal(known: "anonymous")

  /// Returns whether another principal may use a device of this one from now on: only if the device
  /// is from before there were tokens.
  func leaves(deviceTo other: Principal) -> Bool { self == other || self == .anonymous }

  /// Creates the holder of a token of Ferry: the token's owner, and without one the token itself.
  /// Both stay when the secret is replaced.
  package init(_ token: StoredToken) {
    let own = token.account.map { "\(Self.tokenKind)\(token.id)@\($0.id)" }
    self.init(known: token.owner.map { "owner:\($0)" } ?? own ?? "\(Self.tokenKind)\(token.id)")
  }

  private static let tokenKind = "token:"
  /// Bytes before the account of a token made by a principal.
  private static let madeCount = tokenKind.utf8.count + TokenID.byteCount + 1

  /// The charged principal: the first maker, if principals made the token, and otherwise this
  /// principal itself.
  package var account: Principal {
    let rest = id.utf8.dropFirst(Self.madeCount - 1)
    guard rest.first == UInt8(ascii: "@"), rest.count > 1,
      id.utf8.starts(with: Self.tokenKind.utf8)
    else { return self }
    return Principal(known: String(Substring(rest.dropFirst())))
  }

  /// The user: the owner of tokens, or the subject of a JSON Web Token. `nil` for all others.
  package var user: UserID? { UserID(id) }

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

/// A principal and the role in the requested space.
package struct Admission: Sendable, Equatable {
  package let principal: Principal
  package let role: Role
  /// From then on the credential is refused: milliseconds since 1970, `nil` for never.
  package let expiry: Int64?
  /// True if the principal may administer the server itself.
  package let isServerAdmin: Bool
  /// True if the role is one of a member alone: the credential itself has a weaker one, or none.
  package let isByMembership: Bool
  /// True if the server was open when it last looked. The caller has to look again.
  package let assumesOpenServer: Bool

  package init(
    _ principal: Principal, _ role: Role, expiry: Int64? = nil, isServerAdmin: Bool = false,
    isByMembership: Bool = false, assumesOpenServer: Bool = false
  ) {
    self.principal = principal
    self.role = role
    self.expiry = expiry
    self.isServerAdmin = isServerAdmin
    self.isByMembership = isByMembership
    self.assumesOpenServer = assumesOpenServer
  }
}

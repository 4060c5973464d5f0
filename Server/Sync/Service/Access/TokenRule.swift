import FerryProtocol

/// The rules for the management of tokens by principals; pure.
///
/// A server-wide admin manages all tokens. An admin of spaces manages the tokens of these spaces
/// without an owner. Tokens of one owner are one principal, and own the same devices.
enum TokenRule {
  /// Returns the reason why the caller may not create such a token, or `nil`.
  static func fault(creating token: TokenRequest, by caller: Identity) -> Problem? {
    if caller.grants.isServerAdmin { return nil }
    if token.owner != nil {
      return Problem(.forbidden, "only an admin of all spaces creates tokens with an owner")
    }
    guard caller.grants.administers(token.grants) else {
      return Problem(
        .forbidden, "you are not an admin of all the token's spaces: \(token.grants.text)")
    }
    return nil
  }

  /// Returns the account of a token made by the caller; `nil` for a token that counts for itself or
  /// for its owner. An admin of the server may choose any owner, and so could not be bounded.
  static func account(of token: TokenRequest, madeBy caller: Identity) -> Principal? {
    token.owner != nil || caller.grants.isServerAdmin ? nil : caller.principal.account
  }

  /// Returns whether the caller sees the token in lists, and may revoke it.
  static func manages(_ token: StoredToken, _ caller: Identity) -> Bool {
    caller.grants.isServerAdmin || caller.grants.administers(token.grants)
  }

  /// Returns the reason why the caller may not get another secret of the token, or `nil`.
  static func fault(rotating token: StoredToken, by caller: Identity) -> Problem? {
    if caller.grants.isServerAdmin || token.owner == nil { return nil }
    return Problem(.forbidden, "only an admin of all spaces rotates tokens with an owner")
  }
}

/// A request for a token.
package struct TokenRequest: Sendable, Equatable {
  /// The longest life, and the longest grace of a replaced secret: 100 years in seconds.
  package static let secondsMax: Int64 = 3_155_760_000

  package var name: String
  package var owner: String?
  package var grants: AccessGrants
  /// Seconds of validity; `nil` for ever.
  package var lifetime: Int64?

  package init(
    name: String = "", owner: String? = nil, grants: AccessGrants, lifetime: Int64? = nil
  ) {
    self.name = name
    self.owner = owner
    self.grants = grants
    self.lifetime = lifetime
  }

  /// The reason why there can be no such token, or `nil`.
  package var fault: String? {
    let most = StoredToken.textBytesMax
    if name.utf8.count > most { return "a name has at most \(most) bytes" }
    if let owner, owner.isEmpty || owner.utf8.count > most {
      return "an owner has 1 to \(most) bytes"
    }
    if let owner, let user = UserID(owner) {
      return "the owner begins like a user; write \(user.name)"
    }
    for (part, text) in [("name", name), ("owner", owner ?? "")] {
      if let hidden = ReadableName.hiddenScalar(in: text) {
        return "the \(part) contains \(hidden), which is not a visible character"
      }
    }
    if grants.roles.isEmpty, owner == nil {
      return
        "a token needs spaces, as {\"notes\":\"writer\"}, or an owner who is a member of spaces"
    }
    if let lifetime, lifetime < 1 || lifetime > Self.secondsMax {
      return "a token is valid for 1 to \(Self.secondsMax) seconds, or for ever"
    }
    return nil
  }

  /// Returns the token and its secret. `random` must be fit for secrets.
  ///
  /// - Parameter account: The account to charge for the token; `nil` for the token itself or its
  ///   owner.
  package func make(
    now: Int64, account: Principal? = nil, random: inout some RandomNumberGenerator
  ) -> (token: StoredToken, secret: AccessToken) {
    let secret = AccessToken(random: &random)
    let token = StoredToken(
      id: TokenID(hash: secret.hash), name: name, owner: owner, account: account, grants: grants,
      createdAt: now, expiresAt: lifetime.map { now + $0 * 1_000 })
    return (token, secret)
  }
}

extension TokenRequest: JSONMessage {
  package static var blank: Self { Self(grants: .blank) }
  package static var strictness: MemberStrictness { .once }

  /// The body of `POST /v1/tokens`.
  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.defaulted("name", &name)
    try json.nullable("owner", &owner)
    try json.defaulted("spaces", &grants)
    try json.nullable("expiresIn", &lifetime)
    try json.check(fault)
  }
}

/// The body of a rotation.
struct TokenRotation: JSONMessage {
  /// The seconds for which the secret before stays valid.
  var grace: Int64 = 0

  static var blank: Self { Self() }
  static var strictness: MemberStrictness { .once }

  mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.defaulted("grace", &grace)
    try json.check(
      (0...TokenRequest.secondsMax).contains(grace),
      "a grace has 0 to \(TokenRequest.secondsMax) seconds")
  }
}

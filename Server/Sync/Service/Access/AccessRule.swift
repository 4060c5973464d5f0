import FerryProtocol

/// The permissions of a principal in a space; pure.
enum AccessRule {
  /// Returns the permission of a principal in `space`, or the reason of the refusal.
  ///
  /// - Parameter need: The role required by the route.
  static func decide(
    _ identity: Identity, space: SpaceName, need: Role
  ) -> Result<Admission, Problem> {
    guard let role = identity.role(in: space) else {
      return .failure(
        Problem(
          .forbidden,
          identity.principal.user == nil
            ? "the token is not for space \(space)"
            : "you are not a member of space \(space), and the token is not for it"))
    }
    let isByMembership = identity.grants.role(in: space) != role
    guard role >= need else {
      let subject = isByMembership ? "your" : "the token's"
      return .failure(
        Problem(
          .forbidden, "\(subject) role is \(role.rawValue); this needs \(need.rawValue)"))
    }
    return .success(
      Admission(
        identity.principal, role, expiry: identity.expiry,
        isServerAdmin: identity.grants.isServerAdmin, isByMembership: isByMembership))
  }

  /// Returns the identity behind a token of Ferry's, or why it is refused.
  static func recognise(_ known: KnownToken?, now: Int64) -> Result<Identity, Problem> {
    guard let known else {
      return .failure(
        Problem(.unauthorized, "the server does not know the token; it may have been revoked"))
    }
    let identity = Identity(known)
    return identity.isExpired(at: now) ? .failure(expired) : .success(identity)
  }

  static let expired = Problem(.unauthorized, "the token has expired; ask for another one")

  /// Returns the reason why a request without a usable credential is refused.
  static func fault(of credential: Credential) -> Problem? {
    switch credential {
    case .none:
      Problem(.unauthorized, "send `Authorization: Bearer …` with a token of this space")
    case .unreadable:
      Problem(
        .unauthorized,
        "the Authorization header contains neither a token ferry_… nor a JSON Web Token")
    case .token, .signed: nil
    }
  }

  /// Returns the challenge of a 401 (RFC 6750 §3).
  static func challenge(for credential: Credential) -> String {
    credential == .none
      ? "Bearer realm=\"ferry\"" : "Bearer realm=\"ferry\", error=\"invalid_token\""
  }
}

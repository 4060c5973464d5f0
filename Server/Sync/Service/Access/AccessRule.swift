import FerryProtocol

/// Who may do what; pure. A token is for one space, and its role is reader, writer or admin.
enum AccessRule {
  /// What the caller may do in `space`, or why it is turned away.
  /// - Parameters:
  ///   - known: What the store knows of the token shown, `nil` when it knows none.
  ///   - need: The role that the route asks for.
  static func decide(
    _ credential: Credential, known: StoredToken?, space: SpaceName, need: Role
  ) -> Result<Admission, Problem> {
    recognise(credential, known: known).flatMap { known in
      guard known.space == space else {
        return .failure(Problem(.forbidden, "the token is for another space than \(space)"))
      }
      guard known.role >= need else {
        return .failure(
          Problem(
            .forbidden,
            "the token's role is \(known.role.rawValue); this needs \(need.rawValue)"))
      }
      return .success(Admission(Principal(known), known.role))
    }
  }

  /// The token that was shown, or why there is none.
  static func recognise(
    _ credential: Credential, known: StoredToken?
  ) -> Result<StoredToken, Problem> {
    switch credential {
    case .none:
      return .failure(
        Problem(.unauthorized, "send `Authorization: Bearer ferry_…` with a token of this space"))
    case .unreadable:
      return .failure(
        Problem(.unauthorized, "the Authorization header holds no token of the form ferry_…"))
    case .token:
      guard let known else {
        return .failure(
          Problem(.unauthorized, "the token is not known here; it may have been revoked"))
      }
      return .success(known)
    }
  }

  /// The challenge that travels with a 401 (RFC 6750 §3).
  static func challenge(for credential: Credential) -> String {
    credential == .none
      ? "Bearer realm=\"ferry\"" : "Bearer realm=\"ferry\", error=\"invalid_token\""
  }

  /// Why a browser's request is turned away from a server that is open to this machine only, or
  /// `nil`. Any web page can make a browser send requests to loopback: its own name bound to
  /// 127.0.0.1 shows in `Host`, and its origin in `Origin`.
  static func loopbackFault(host: String?, origin: String?) -> Problem? {
    if let origin {
      return Problem(
        .forbidden, "requests from web pages (\(origin)) need a server with tokens")
    }
    guard let host, !ListenAddress.isLoopback(authority: host) else { return nil }
    return Problem(
      .forbidden,
      "no tokens exist, so only this machine is served, but the request names host \(host)")
  }
}

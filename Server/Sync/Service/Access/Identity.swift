import FerryProtocol

/// The result of a credential's check: the principal and the permissions.
package struct Identity: Sendable, Equatable {
  package let principal: Principal
  package let grants: AccessGrants
  /// The roles of the user as a member, by space (SPEC.md §41).
  package var memberships: [SpaceName: Role] = [:]
  /// From then on the credential is refused: milliseconds since 1970, `nil` for never.
  package let expiry: Int64?

  package init(_ principal: Principal, _ grants: AccessGrants, expiry: Int64? = nil) {
    self.principal = principal
    self.grants = grants
    self.expiry = expiry
  }

  /// Creates the holder of a token of Ferry's.
  package init(_ known: KnownToken) {
    self.init(Principal(known.token), known.token.grants, expiry: known.validUntil)
  }

  /// Every sender, as long as no token was created.
  package static let anonymous = Identity(.anonymous, AccessGrants(everywhere: .admin))

  /// Returns the role in a space; `nil` if there is none.
  package func role(in space: SpaceName) -> Role? {
    switch (grants.role(in: space), memberships[space]) {
    case (let granted?, let own?): max(granted, own)
    case (let granted, let own): granted ?? own
    }
  }

  /// Returns whether the credential is refused at a moment of the wall clock.
  package func isExpired(at now: Int64) -> Bool { expiry.map { now >= $0 } ?? false }
}

import FerryProtocol

/// The identity behind a request, after its credential was checked.
///
/// Ownership of devices, quotas, rate limits and the audit log refer to principals, never to
/// tokens: one principal may use several tokens at the same time.
package struct Principal: Sendable, Hashable, CustomStringConvertible {
  /// The limit of ``id``, in bytes of UTF-8.
  package static let byteCountMax = 512

  /// Stable text, 1 to 512 bytes: `token:` and the token's identifier, for example.
  package let id: String

  /// Returns `nil` if the text is empty or longer than 512 bytes.
  package init?(_ id: String) {
    guard !id.isEmpty, id.utf8.count <= Self.byteCountMax else { return nil }
    self.id = id
  }

  private init(known id: String) { self.id = id }

  /// Every sender, as long as no token was created.
  package static let anonymous = Principal(known: "anonymous")

  /// The owner of a token of Ferry's.
  package init(_ token: StoredToken) { self.init(known: "token:\(token.fullID)") }

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

  package init(_ principal: Principal, _ role: Role) {
    self.principal = principal
    self.role = role
  }
}

import FerryCryptography
import FerryProtocol

/// A permanent name of a token, unchanged when the secret is replaced: 16 hexadecimal digits.
package struct TokenID: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// Bytes of ``text``.
  static let byteCount = 16

  package let text: String

  /// Returns `nil` for text of another form.
  package init?(_ text: String) {
    let isHexadecimal = text.utf8.allSatisfy { byte in
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
    guard text.utf8.count == Self.byteCount, isHexadecimal else { return nil }
    self.text = text
  }

  /// Creates the identifier of a token from the hash of the first secret.
  package init(hash: [UInt8]) { text = Hexadecimal.text(hash.prefix(8)) }

  package static func < (left: TokenID, right: TokenID) -> Bool { left.text < right.text }

  package var description: String { text }
}

/// A token as stored. The secret is stored separately, and only as a SHA-256.
package struct StoredToken: Sendable, Equatable {
  /// Secrets valid at once; a rotation ends those with the earliest end.
  package static let secretsMax = 10
  /// Tokens read at once, and the most of one answer.
  package static let pageMax = 1_000
  /// Bytes of a name or an owner.
  package static let textBytesMax = 200

  package let id: TokenID
  /// For people; may be empty.
  package var name: String
  /// The person or service that uses the token: tokens of one owner are one principal.
  package var owner: String?
  /// The account that the token counts for: the creating principal's. `nil` for a token of the
  /// server's administrators, which counts for itself or for its owner.
  package var account: Principal?
  package var grants: AccessGrants
  /// Milliseconds since 1970, as all times here.
  package var createdAt: Int64
  /// From then on it is refused; `nil` for never.
  package var expiresAt: Int64?
  /// About when it was shown last, to a minute; `nil` for never.
  package var lastUsedAt: Int64?

  package init(
    id: TokenID, name: String = "", owner: String? = nil, account: Principal? = nil,
    grants: AccessGrants, createdAt: Int64, expiresAt: Int64? = nil, lastUsedAt: Int64? = nil
  ) {
    self.id = id
    self.name = name
    self.owner = owner
    self.account = account
    self.grants = grants
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.lastUsedAt = lastUsedAt
  }

  /// The place of the token in lists.
  package var place: Place { Place(createdAt: createdAt, id: id) }

  /// A place in lists, which are ordered by the time of creation.
  package struct Place: Sendable, Equatable {
    package let createdAt: Int64
    package let id: TokenID

    package init(createdAt: Int64, id: TokenID) {
      self.createdAt = createdAt
      self.id = id
    }

    /// Parses ``text``; `nil` if it is none.
    package init?(_ text: String) {
      let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      guard parts.count == 2, let createdAt = Int64(String(Substring(parts[0]))),
        let id = TokenID(String(Substring(parts[1])))
      else { return nil }
      self.init(createdAt: createdAt, id: id)
    }

    /// The place as clients get it.
    package var text: String { "\(createdAt)/\(id)" }
  }

  /// For people: the identifier, the name and the grants.
  package var text: String {
    let names = [name.isEmpty ? nil : name, owner.map { "owner \($0)" }].compactMap { $0 }
    return names.isEmpty
      ? "\(id) (\(grants.text))" : "\(id) (\(names.joined(separator: ", ")): \(grants.text))"
  }
}

/// A token found by the hash of a secret.
package struct KnownToken: Sendable, Equatable {
  package let token: StoredToken
  /// End of this secret's validity: the end of the token, or of a replaced secret.
  package let validUntil: Int64?

  package init(_ token: StoredToken, secretExpiresAt: Int64? = nil) {
    self.token = token
    validUntil =
      if let end = token.expiresAt, let other = secretExpiresAt {
        min(end, other)
      } else {
        token.expiresAt ?? secretExpiresAt
      }
  }
}

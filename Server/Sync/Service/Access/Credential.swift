/// What a request shows to be let in.
package enum Credential: Sendable, Equatable {
  /// No `Authorization` header.
  case none
  /// A header, but no token of Ferry's in it.
  case unreadable
  case token(AccessToken)

  /// Reads an `Authorization` header (RFC 6750 §2.1).
  package init(authorization header: String?) {
    guard let header else {
      self = .none
      return
    }
    let parts = header.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
    guard parts.count == 2, parts[0].lowercased() == "bearer",
      let token = AccessToken(parts[1].drop(while: { $0 == " " }).trimmingTrailingSpace)
    else {
      self = .unreadable
      return
    }
    self = .token(token)
  }
}

extension Substring {
  fileprivate var trimmingTrailingSpace: Substring {
    var text = self
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return text
  }
}

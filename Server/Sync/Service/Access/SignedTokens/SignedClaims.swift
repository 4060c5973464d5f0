import FerryProtocol

/// The rules for the claims of a JSON Web Token.
package struct ClaimRules: Sendable, Equatable {
  /// The issuer, exactly as the claim `iss` has it.
  package var issuer: String
  /// Audiences of which the claim `aud` must name one.
  package var audiences: [String]
  /// The claim with spaces and roles.
  package var grantsClaim: String
  /// The permitted difference between the clocks of issuer and server, in milliseconds.
  package var leeway: Int64

  package init(
    issuer: String, audiences: [String], grantsClaim: String = "ferry", leeway: Int64 = 60_000
  ) {
    self.issuer = issuer
    self.audiences = audiences
    self.grantsClaim = grantsClaim
    self.leeway = leeway
  }
}

/// The claims of a token whose signature was checked (RFC 7519 §4.1); pure.
struct SignedClaims: Equatable {
  private(set) var issuer: String?
  private(set) var subject: String?
  private(set) var audiences: [String] = []
  /// Milliseconds since 1970.
  private(set) var expiry: Int64?
  private(set) var notBefore: Int64?
  private(set) var issuedAt: Int64?
  /// `nil` without the claim: the user may be a member of spaces.
  private(set) var grants: AccessGrants?

  /// Reads the claims. A duplicate name of a member is refused at every depth.
  init(_ payload: [UInt8], grantsClaim: String) throws(SignedTokenFault) {
    do {
      self = try decode(payload) { (reader) throws(MalformedMessage) in
        try SignedClaims(reading: &reader, grantsClaim)
      }
    } catch {
      throw SignedTokenFault("its claims cannot be read: \(error.reason)")
    }
  }

  private init(
    reading reader: inout JSONReader, _ grantsClaim: String
  ) throws(MalformedMessage) {
    var claims = self
    try reader.uniqueObject { (key, reader) throws(MalformedMessage) in
      if try key.text().utf8.elementsEqual(grantsClaim.utf8) {
        claims.grants = try AccessGrants(readingClaim: &reader)
        return
      }
      switch key {
      case "iss": claims.issuer = try reader.string()
      case "sub": claims.subject = try reader.string()
      case "aud":
        if try reader.peek() == UInt8(ascii: "[") {
          try reader.array { (reader) throws(MalformedMessage) in
            claims.audiences.append(try reader.string())
          }
        } else {
          claims.audiences = [try reader.string()]
        }
      case "exp": claims.expiry = try reader.numericDate()
      case "nbf": claims.notBefore = try reader.numericDate()
      case "iat": claims.issuedAt = try reader.numericDate()
      default: try reader.skip(refusingRepeats: true)
      }
    }
    self = claims
  }

  /// Returns the identity of the claims, or the reason of the refusal.
  ///
  /// - Parameter now: The wall clock, milliseconds since 1970.
  func checked(by rules: ClaimRules, now: Int64) -> Result<Identity, Problem> {
    if let fault = fault(rules, now: now) { return .failure(.badSignedToken(fault)) }
    guard let subject, !subject.isEmpty, ReadableName.hiddenScalar(in: subject) == nil,
      let principal = Principal("jwt:\(rules.issuer)#\(subject)"),
      principal.id.utf8.count <= Principal.byteCountMax
    else {
      return .failure(
        .badSignedToken(
          "its subject (sub) is missing, has control or invisible characters, or is too long "
            + "together with the issuer"))
    }
    return .success(
      Identity(principal, grants ?? .none, expiry: expiry.map { $0 + rules.leeway }))
  }

  private func fault(_ rules: ClaimRules, now: Int64) -> String? {
    guard let issuer, issuer.utf8.elementsEqual(rules.issuer.utf8) else {
      return "this server does not trust its issuer (iss)"
    }
    let isMeant = audiences.contains { audience in
      rules.audiences.contains { $0.utf8.elementsEqual(audience.utf8) }
    }
    guard isMeant else { return "its audience (aud) is not this server's" }
    guard let expiry else { return "it has no end (exp)" }
    guard now < expiry + rules.leeway else { return "it has expired" }
    if let notBefore, now + rules.leeway < notBefore { return "it is not valid yet (nbf)" }
    if let issuedAt, now + rules.leeway < issuedAt { return "it was issued in the future (iat)" }
    return nil
  }
}

extension JSONReader {
  /// Reads seconds since 1970, perhaps with a fraction (RFC 7519 §2), as milliseconds. Refuses
  /// dates further away than 100,000 years.
  fileprivate mutating func numericDate() throws(MalformedMessage) -> Int64 {
    let seconds: Double
    switch try number() {
    case .integer(let value): seconds = Double(value)
    case .real(let value): seconds = value
    default: throw malformed("a date is a number of seconds")
    }
    guard abs(seconds) < 3.2e12 else { throw malformed("a date is out of range") }
    return Int64(seconds * 1_000)
  }
}

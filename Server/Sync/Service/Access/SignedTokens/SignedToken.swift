import FerryCryptography
import FerryPlatform
import FerryProtocol

/// The reason why a JSON Web Token is refused; the text goes to the client.
struct SignedTokenFault: Error, Equatable {
  let reason: String

  init(_ reason: String) { self.reason = reason }
}

/// The permitted algorithms of signatures (RFC 7518 §3.1, RFC 8037 §3.1). `none` is not among them.
enum SignatureAlgorithm: String, Sendable, CaseIterable {
  case rs256 = "RS256"
  case es256 = "ES256"
  case edDSA = "EdDSA"
  case hs256 = "HS256"
}

/// A JSON Web Token in its parts (RFC 7515 §7.1, RFC 7519 §3); pure. Nothing of it counts before
/// the check of the signature.
struct SignedToken: Equatable {
  let algorithm: SignatureAlgorithm
  /// Names the key.
  let keyID: String?
  /// The signed bytes.
  let signedBytes: [UInt8]
  let signature: [UInt8]
  /// The claims as JSON.
  let payload: [UInt8]

  init(_ text: SignedText) throws(SignedTokenFault) {
    let parts = text.text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Base64URL.decode(parts[0]),
      let payload = Base64URL.decode(parts[1]), let signature = Base64URL.decode(parts[2])
    else { throw SignedTokenFault("its parts are not base64url") }
    let members: Header
    do {
      members = try decode(header) { (reader) throws(MalformedMessage) in
        try Header(reading: &reader)
      }
    } catch {
      throw SignedTokenFault("its header is not valid JSON: \(error.reason)")
    }
    algorithm = try members.checked()
    keyID = members.keyID
    signedBytes = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
    self.signature = signature
    self.payload = payload
  }
}

/// The members of a header that count. Keys inside of a token (`jwk`, `jku`, `x5c`, `x5u`) do not.
private struct Header {
  var algorithm: String?
  var keyID: String?
  var type: String?
  var isCritical = false

  init(reading reader: inout JSONReader) throws(MalformedMessage) {
    var header = self
    try reader.uniqueObject { (key, reader) throws(MalformedMessage) in
      switch key {
      case "alg": header.algorithm = try reader.string()
      case "kid": header.keyID = try reader.string()
      case "typ": header.type = try reader.string()
      case "crit":
        header.isCritical = true
        try reader.skip(refusingRepeats: true)
      default: try reader.skip(refusingRepeats: true)
      }
    }
    self = header
  }

  func checked() throws(SignedTokenFault) -> SignatureAlgorithm {
    if isCritical {
      throw SignedTokenFault("it requires extensions (crit) that this server does not support")
    }
    if let type {
      let types = ["jwt", "at+jwt", "application/jwt", "application/at+jwt"]
      guard types.contains(type.lowercasedASCII) else {
        throw SignedTokenFault("its type (typ) is not JWT")
      }
    }
    guard let algorithm = algorithm.flatMap({ SignatureAlgorithm(rawValue: $0) }) else {
      throw SignedTokenFault("it is not signed by RS256, ES256, EdDSA or HS256 (alg)")
    }
    return algorithm
  }
}

extension JSONReader {
  /// Reads an object whose members have different names (RFC 7519 §4).
  mutating func uniqueObject(
    _ member: (JSONKey, inout JSONReader) throws(MalformedMessage) -> Void
  ) throws(MalformedMessage) {
    var names: Set<[UInt8]> = []
    try object { (key, reader) throws(MalformedMessage) in
      guard names.insert(Array(try key.text().utf8)).inserted else {
        throw reader.malformed("a member's name occurs twice")
      }
      try member(key, &reader)
    }
  }
}

extension SignedText {
  /// The SHA-256 of the text, which the cache keeps.
  var hash: [UInt8] { SHA256.digest(of: text) }
}

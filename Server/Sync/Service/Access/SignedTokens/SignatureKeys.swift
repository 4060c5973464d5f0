import FerryCryptography
import FerryPlatform
import FerryProtocol

/// The keys of an issuer: a JSON Web Key Set (RFC 7517 §5).
package struct SignatureKeys: Sendable {
  /// Bytes of a document at most.
  package static let byteCountMax = 1 << 20
  /// The most keys in use.
  package static let countMax = 100
  /// Keys tried for a token without a named key.
  static let triesMax = 8

  private enum Material {
    case publicKey(VerificationKey)
    case ed25519(Ed25519.PublicKey)
    case secret([UInt8])
  }

  private struct Entry {
    let id: String?
    let algorithm: SignatureAlgorithm
    let material: Material
  }

  private let entries: [Entry]

  /// Usable keys.
  package var count: Int { entries.count }

  /// Reads a document. Skips keys of other kinds, for other uses, and weak ones.
  ///
  /// - Parameter takesSecrets: Whether shared secrets (`oct`) count. They must never come from a
  ///   place readable by others.
  package init(_ document: [UInt8], takesSecrets: Bool) throws(MalformedMessage) {
    entries = try decode(document) { (reader) throws(MalformedMessage) in
      guard document.count <= Self.byteCountMax else {
        throw reader.malformed("the key set has more than \(Self.byteCountMax) bytes")
      }
      var (entries, hasKeys): ([Entry], Bool) = ([], false)
      try reader.uniqueObject { (key, reader) throws(MalformedMessage) in
        guard case "keys" = key else { return _ = try reader.skip(refusingRepeats: true) }
        hasKeys = true
        try reader.array { (reader) throws(MalformedMessage) in
          let members = try KeyMembers(reading: &reader)
          guard let entry = Self.entry(members, takesSecrets: takesSecrets) else { return }
          guard entries.count < Self.countMax else {
            throw reader.malformed("more than \(Self.countMax) keys")
          }
          entries.append(entry)
        }
      }
      guard hasKeys else { throw reader.malformed("this is not a key set: it has no member keys") }
      return entries
    }
  }

  private static func entry(_ key: KeyMembers, takesSecrets: Bool) -> Entry? {
    guard key.isForSignatures, let (algorithm, material) = material(key, takesSecrets) else {
      return nil
    }
    if let named = key["alg"], named != algorithm.rawValue { return nil }
    return Entry(id: key["kid"], algorithm: algorithm, material: material)
  }

  /// Returns the key's material. The key's type decides about the algorithm, never the token.
  private static func material(
    _ key: KeyMembers, _ takesSecrets: Bool
  ) -> (SignatureAlgorithm, Material)? {
    switch key["kty"] {
    case "RSA":
      guard let n = key.bytes("n"), let e = key.bytes("e"),
        let rsa = try? VerificationKey(rsaModulus: n, exponent: e)
      else { return nil }
      return (.rs256, .publicKey(rsa))
    case "EC":
      guard key["crv"] == "P-256", let x = key.bytes("x"), let y = key.bytes("y"),
        let point = try? VerificationKey(p256: x, y)
      else { return nil }
      return (.es256, .publicKey(point))
    case "OKP":
      guard key["crv"] == "Ed25519", let x = key.bytes("x"),
        let edwards = try? Ed25519.PublicKey(x)
      else { return nil }
      return (.edDSA, .ed25519(edwards))
    case "oct":
      // RFC 7518 §3.2: as long as the hash at least.
      guard takesSecrets, let secret = key.bytes("k"), secret.count >= 32 else { return nil }
      return (.hs256, .secret(secret))
    default: return nil
    }
  }

  /// The result of a check of a token against the keys.
  enum Verdict: Equatable {
    case valid
    case forged
    /// No key has this identifier and type: perhaps a newer set has.
    case unknownKey
    /// No key set could be read so far.
    case noKeys
  }

  /// Returns the possible signing keys of the token.
  private func candidates(for token: SignedToken) -> [Entry] {
    let fitting = entries.filter { $0.algorithm == token.algorithm }
    guard let id = token.keyID else { return fitting }
    let named = fitting.filter { $0.id?.utf8.elementsEqual(id.utf8) == true }
    // A key without a name may be the right one.
    return named.isEmpty ? fitting.filter { $0.id == nil } : named
  }

  /// Returns the name of the key claimed by the token, empty for a key without a name; `nil` if no
  /// key has this identifier and type.
  func claimedKey(of token: SignedToken) -> String? {
    candidates(for: token).first.map { token.keyID == nil ? "" : $0.id ?? "" }
  }

  func check(_ token: SignedToken) -> Verdict {
    let candidates = candidates(for: token)
    guard !candidates.isEmpty else { return .unknownKey }
    let isValid = candidates.prefix(Self.triesMax).contains { entry in
      switch entry.material {
      case .publicKey(let key): key.isValid(token.signature, for: token.signedBytes)
      case .ed25519(let key): key.isValid(token.signature, for: token.signedBytes)
      case .secret(let key):
        HMACSHA256.isValid(token.signature, for: token.signedBytes, key: key)
      }
    }
    if isValid { return .valid }
    return token.keyID == nil ? .unknownKey : .forged
  }
}

/// The members of one key in the form of text (RFC 7517 §4), and the key's operations.
private struct KeyMembers {
  private var texts: [String: String] = [:]
  private var operations: [String]?

  init(reading reader: inout JSONReader) throws(MalformedMessage) {
    var members = self
    try reader.uniqueObject { (key, reader) throws(MalformedMessage) in
      switch try reader.peek() {
      case UInt8(ascii: "\""): members.texts[try key.text()] = try reader.string()
      case UInt8(ascii: "["):
        guard case "key_ops" = key else { return _ = try reader.skip(refusingRepeats: true) }
        var operations: [String] = []
        try reader.array { (reader) throws(MalformedMessage) in
          operations.append(try reader.string())
        }
        members.operations = operations
      default: try reader.skip(refusingRepeats: true)
      }
    }
    self = members
  }

  subscript(name: String) -> String? { texts[name] }

  func bytes(_ name: String) -> [UInt8]? { texts[name].flatMap { Base64URL.decode($0.utf8) } }

  var isForSignatures: Bool {
    (texts["use"] ?? "sig") == "sig" && (operations?.contains(where: { $0 == "verify" }) ?? true)
  }
}

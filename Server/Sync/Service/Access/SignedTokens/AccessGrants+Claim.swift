import FerryProtocol

// As a claim of a JSON Web Token. Many issuers put only text into a claim, or a list of texts.
extension AccessGrants {
  /// Reads a claim in one of its three forms:
  ///
  /// - an object: `{"list-7":"writer","note*":"reader"}`;
  /// - a text of words with commas or spaces between them: `"list-7=writer,note*=reader"`;
  /// - a list of such texts: `["list-7=writer","note*=reader"]`.
  ///
  /// A word in another form than `SPACE=ROLE` is refused. Several words for one space give the
  /// strongest of their roles, since an issuer joins the texts of a user's groups.
  init(readingClaim reader: inout JSONReader) throws(MalformedMessage) {
    if try reader.peek() == UInt8(ascii: "{") {
      try self.init(from: &reader, .standard)
      guard !roles.isEmpty else { throw reader.malformed("no space is named") }
      return
    }
    var words = GrantWords()
    if try reader.peek() == UInt8(ascii: "[") {
      try reader.array { (reader) throws(MalformedMessage) in try words.read(&reader) }
    } else {
      try words.read(&reader)
    }
    guard let grants = AccessGrants(words.roles) else {
      throw reader.malformed("no space is named")
    }
    self = grants
  }
}

/// Roles from words.
private struct GrantWords {
  private(set) var roles: [SpacePattern: Role] = [:]

  mutating func read(_ reader: inout JSONReader) throws(MalformedMessage) {
    guard try reader.peek() == UInt8(ascii: "\"") else {
      throw reader.malformed("spaces and roles are an object, a text or a list of texts")
    }
    let text = try reader.string()
    for word in text.utf8.split(whereSeparator: { $0 == UInt8(ascii: ",") || $0 == 0x20 }) {
      try parse(String(decoding: word, as: UTF8.self), reader)
    }
  }

  private mutating func parse(_ word: String, _ reader: JSONReader) throws(MalformedMessage) {
    let parts = word.utf8.split(
      separator: UInt8(ascii: "="), omittingEmptySubsequences: false
    ).map { String(decoding: $0, as: UTF8.self) }
    guard parts.count == 2 else {
      throw reader.malformed("'\(word.prefix(80))' is not of the form SPACE=ROLE")
    }
    guard let pattern = SpacePattern(parts[0]) else {
      throw reader.malformed(
        "'\(parts[0].prefix(80))' is neither a space's name nor the beginning of names and *")
    }
    guard let role = Role(rawValue: parts[1]) else {
      throw reader.malformed("a role is reader, writer or admin")
    }
    roles[pattern] = max(roles[pattern] ?? role, role)
    guard roles.count <= AccessGrants.countMax else {
      throw reader.malformed("more than \(AccessGrants.countMax) spaces")
    }
  }
}

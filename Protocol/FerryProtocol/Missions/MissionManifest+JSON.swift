import FerryPlatform

extension MissionManifest: JSONMessage {
  package static var noun: String? { "the manifest" }
  package static var depth: Int? { 4 }
  package static var blank: Self { Self(space: .blank, id: .blank, version: 0, items: []) }

  /// Reads a document and checks it whole, as ``fault(limits:)`` does. Skips unknown members;
  /// another `format` is refused.
  package init(
    decoding bytes: [UInt8], limits: MissionLimits = .standard
  ) throws(MalformedMessage) {
    var rules = ReadingRules.standard
    rules.missions = limits
    try self.init(decoding: bytes, rules, bytesMax: limits.manifestBytes)
  }

  /// Reads a publisher's request: the document, in which `format`, `space`, `mission` and `version`
  /// may be missing. Present members have to fit. A missing version is 0 in the result: the next
  /// one.
  package static func publication(
    decoding bytes: [UInt8], in space: SpaceName, as id: MissionID,
    limits: MissionLimits = .standard
  ) throws(MalformedMessage) -> MissionManifest {
    var rules = ReadingRules.standard
    (rules.missions, rules.mission) = (limits, (space, id))
    let manifest = try Self(decoding: bytes, rules)
    guard manifest.space == space, manifest.id == id else {
      throw MalformedMessage(
        reason: "the document is mission \(manifest.id) of space \(manifest.space)", offset: 0)
    }
    return manifest
  }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    let (limits, given) = (json.rules.missions, json.rules.mission)
    if let given, space == .blank { (space, id) = given }
    try json.format(1, unless: given != nil)
    try json.required("space", &space, unless: given != nil)
    try json.required("mission", &id, unless: given != nil)
    try json.required("version", &version, unless: given != nil)
    try json.defaulted("title", &title)
    try json.defaulted("summary", &summary)
    try json.defaulted("priority", &priority)
    try json.defaulted("after", &after, as: .list(max: limits.after, "missions"))
    try json.defaulted("chunkSize", &chunkSize)
    try json.optional("bundle", &bundle)
    try json.required("items", &items, as: .list(max: limits.items, "items"))
    try json.check(fault(limits, isVersionGiven: given != nil))
  }

  /// A publisher's request may have no version yet.
  private func fault(_ limits: MissionLimits, isVersionGiven: Bool) -> String? {
    guard isVersionGiven else { return fault(limits: limits) }
    var next = self
    next.version = max(1, version)
    return next.fault(limits: limits)
  }
}

extension MissionItem: JSONMessage {
  package static var blank: Self { Self(path: "", size: 0, hash: .blank) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("path", &path)
    try json.defaulted("kind", &kind, as: .kind)
    try json.defaulted("mediaType", &mediaType)
    try json.required("size", &size)
    try json.required("sha256", &hash)
    try json.omitting("chunks", &chunks, [])
    try json.optional("url", &url)
    try json.omitting("hosted", &isHosted, true)
    // A document could have millions of empty paths.
    try json.omitting("after", &after, [], as: .list(max: json.rules.missions.after, "items"))
  }
}

extension JSONForm<MissionItemKind> {
  /// An unknown kind is a file like any other.
  fileprivate static var kind: JSONForm {
    JSONForm { (reader, _) throws(MalformedMessage) in
      MissionItemKind(rawValue: try reader.string()) ?? .file
    } write: { json, kind in
      json.string(kind.rawValue)
    }
  }
}

extension ContentHash: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    let text = try reader.string()
    if let hash = Self(text) {
      self = hash
    } else if Self(text.lowercasedASCII) != nil {
      throw reader.malformed("a SHA-256 is written in lower case: “\(text.lowercasedASCII)”")
    } else {
      throw reader.malformed("not a SHA-256 of 64 lower-case hexadecimal digits")
    }
  }

  package func write(to json: inout JSONWriter) { json.string(description) }
}

extension BundleDeclaration {
  /// The file with the declaration of the bundle, in a published folder.
  package static let fileName = "ferry-bundle.json"

  /// Reads `ferry-bundle.json`. Unknown members are refused: the publisher may have meant one to
  /// count.
  ///
  /// - Parameter name: Replaces the name in the file.
  package init(
    decoding bytes: [UInt8], name: BundleName? = nil, limits: BundleLimits = .standard
  ) throws(MalformedMessage) {
    var rules = ReadingRules.standard
    (rules.bundles, rules.isStrict, rules.bundleName) = (limits, true, name)
    try self.init(decoding: bytes, rules, bytesMax: limits.declarationBytes)
  }
}

extension BundleDeclaration: JSONMessage {
  package static var noun: String? { "the bundle" }
  package static var depth: Int? { 4 }
  package static var strictness: MemberStrictness { .once }
  package static var blank: Self { Self(.blank) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    var (name, version) = (id.name, id.version)
    let given = json.rules.bundleName
    try json.required("name", &name, unless: given != nil, missing: "a bundle needs “name”")
    try json.required("version", &version, missing: "a bundle needs “version”")
    id = BundleID(given ?? name, version)
    try json.defaulted("entry", &entry)
    try json.defaulted(
      "services", &services, as: .list(max: json.rules.bundles.services, "services"))
    try json.optional("minShell", &minShell)
  }
}

extension BundleService: JSONMessage {
  package static var blank: Self { Self(unchecked: "") }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    let form = JSONForm<String>.value.checked { name, _ in
      BundleService(name) == nil ? Self.rule : nil
    }
    try json.required("name", &name, as: form, missing: Self.rule)
    try json.optional("version", &version)
  }

  private static let rule =
    "a service has a “name” of 1 to 64 characters of A–Z a–z 0–9 . _ - that begins with a letter "
    + "or digit"
}

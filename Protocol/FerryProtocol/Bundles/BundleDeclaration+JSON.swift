extension BundleDeclaration: JSONWritable {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("name", id.name.value)
      json.member("version", id.version.description)
      json.member("entry", entry)
      json.key("services")
      json.array(of: services) { json, service in
        json.object { json in
          json.member("name", service.name)
          json.member("version", ifPresent: service.version?.description)
        }
      }
      json.member("minShell", ifPresent: minShell?.description)
    }
  }
}

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
    guard bytes.count <= limits.declarationBytes else {
      throw MalformedMessage(
        reason: "it has \(bytes.count) bytes; \(limits.declarationBytes) are allowed", offset: 0)
    }
    self = try decode(bytes, depth: 4) { (reader) throws(MalformedMessage) in
      try reader.bundleDeclaration(isStrict: true, name: name, limits)
    }
  }
}

extension JSONReader {
  /// Reads a declaration.
  ///
  /// - Parameters:
  ///   - isStrict: Whether unknown members are refused. Otherwise they are passed over.
  ///   - name: Replaces the name in the document.
  mutating func bundleDeclaration(
    isStrict: Bool, name: BundleName? = nil, _ limits: BundleLimits = .standard
  ) throws(MalformedMessage) -> BundleDeclaration {
    var (named, version, minShell) = (name, BundleVersion?.none, BundleVersion?.none)
    var (entry, services, seen) = ("index.html", [BundleService](), Set<String>())
    try object { (key, reader) throws(MalformedMessage) in
      let member = try key.text()
      guard seen.insert(member).inserted else {
        throw reader.malformed("“\(member.prefix(40))” is a duplicate")
      }
      switch key {
      case "name":
        let read = try reader.bundleName()
        if name == nil { named = read }
      case "version": version = try reader.bundleVersion("version")
      case "entry": entry = try reader.string()
      case "services": services = try reader.bundleServices(isStrict: isStrict, limits)
      case "minShell": minShell = try reader.bundleVersion("minShell")
      default:
        guard !isStrict else {
          throw reader.malformed("a bundle has no member “\(member.prefix(40))”")
        }
        try reader.skip()
      }
    }
    guard let named else { throw malformed("a bundle needs “name”") }
    guard let version else { throw malformed("a bundle needs “version”") }
    return BundleDeclaration(
      BundleID(named, version), entry: entry, services: services, minShell: minShell)
  }

  private mutating func bundleServices(
    isStrict: Bool, _ limits: BundleLimits
  ) throws(MalformedMessage) -> [BundleService] {
    var services: [BundleService] = []
    try array { (reader) throws(MalformedMessage) in
      guard services.count < limits.services else {
        throw reader.malformed("more than \(limits.services) services")
      }
      services.append(try reader.bundleService(isStrict: isStrict))
    }
    return services
  }

  private mutating func bundleService(
    isStrict: Bool
  ) throws(MalformedMessage) -> BundleService {
    var (name, version) = (String?.none, BundleVersion?.none)
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "name": name = try reader.string()
      case "version": version = try reader.bundleVersion("a service's version")
      default:
        guard !isStrict else {
          throw reader.malformed("a service has no member “\(try key.text().prefix(40))”")
        }
        try reader.skip()
      }
    }
    guard let name, let service = BundleService(name, version: version) else {
      throw malformed(
        "a service has a “name” of 1 to 64 characters of A–Z a–z 0–9 . _ - that begins with a "
          + "letter or digit")
    }
    return service
  }

  /// Reads a bundle's name.
  package mutating func bundleName() throws(MalformedMessage) -> BundleName {
    guard let name = BundleName(try string()) else {
      throw malformed(
        "a bundle's name has 1 to 64 characters of a–z 0–9 _ - and begins with a letter or digit")
    }
    return name
  }

  /// Reads a version.
  ///
  /// - Parameter member: Names the value in the error.
  package mutating func bundleVersion(_ member: String) throws(MalformedMessage) -> BundleVersion {
    guard try peek() == 0x22, let version = BundleVersion(try string()) else {
      throw malformed("\(member) is a text of 1 to 4 numbers with dots, such as \"1.12\"")
    }
    return version
  }
}

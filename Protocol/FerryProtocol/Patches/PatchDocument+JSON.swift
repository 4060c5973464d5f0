extension PatchDocument {
  /// Returns the document in canonical form: equal patches give equal bytes.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 256 + script.utf8.count)
    json.object { json in
      json.member("format", 1)
      json.member("app", app)
      json.key("appVersions")
      json.array(of: appVersions)
      json.member("behaviour", behaviour)
      json.member("sequence", sequence)
      json.member("expires", expires)
      json.key("services")
      json.array(of: services)
      json.member("script", script)
    }
    return json.finish()
  }

  /// Reads a document and checks it whole, as ``fault(limits:)`` does.
  ///
  /// An unknown member is refused, like another `format`: it might limit the patch further.
  package init(
    decoding bytes: [UInt8], limits: PatchDocumentLimits = .standard
  ) throws(MalformedMessage) {
    guard bytes.count <= limits.documentBytes else {
      throw MalformedMessage(
        reason: "the patch has \(bytes.count) bytes; \(limits.documentBytes) are allowed",
        offset: 0)
    }
    self = try decode(bytes, depth: 2) { (reader) throws(MalformedMessage) in
      try reader.patchDocument(limits)
    }
    if let fault = fault(limits: limits) { throw MalformedMessage(reason: fault, offset: 0) }
  }
}

extension JSONReader {
  fileprivate mutating func patchDocument(
    _ limits: PatchDocumentLimits
  ) throws(MalformedMessage) -> PatchDocument {
    var (format, sequence, expires): (Int64?, Int64?, Int64?)
    var (app, behaviour, script): (String?, String?, String?)
    var (appVersions, services): ([String]?, [String]?)
    var members = 0
    try object { (key, reader) throws(MalformedMessage) in
      members += 1
      switch key {
      case "format": format = try reader.integer()
      case "app": app = try reader.string()
      case "appVersions": appVersions = try reader.patchNames(limits.appVersions)
      case "behaviour": behaviour = try reader.string()
      case "sequence": sequence = try reader.integer()
      case "expires": expires = try reader.integer()
      case "services": services = try reader.patchNames(limits.services)
      case "script": script = try reader.string()
      default: throw reader.malformed("an unknown member: this version does not know its rule")
      }
    }
    guard format == 1 else { throw malformed("this is no patch of format 1") }
    // Eight members, each known: a repeated one would be a ninth, or another one would be missing.
    guard members == 8, let app, let appVersions, let behaviour, let sequence, let expires,
      let services, let script
    else { throw malformed("a member is missing or repeated") }
    return PatchDocument(
      app: app, appVersions: appVersions, behaviour: behaviour, sequence: sequence,
      expires: expires, services: services, script: script)
  }

  private mutating func patchNames(_ limit: Int) throws(MalformedMessage) -> [String] {
    var names: [String] = []
    try array { (reader) throws(MalformedMessage) in
      guard names.count < limit else { throw reader.malformed("more than \(limit) names") }
      names.append(try reader.string())
    }
    return names
  }
}

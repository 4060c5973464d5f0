extension SpaceInfo {
  /// The info as it travels.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 256)
    json.raw("{\"space\":")
    json.string(space.value)
    json.raw(",\"epoch\":\"")
    json.raw(epoch.description.utf8)
    json.raw("\",\"head\":")
    json.numberString(head)
    json.raw(",\"role\":\"")
    json.raw(role.rawValue.utf8)
    json.raw("\",\"time\":")
    json.number(serverTime)
    json.raw("}")
    return json.finish()
  }

  package init(decoding bytes: [UInt8]) throws(MalformedMessage) {
    self = try decode(bytes) { (reader) throws(MalformedMessage) in
      var space: SpaceName?
      var epoch: Epoch?
      var head: SequenceNumber?
      var role: Role?
      var time: Int64?
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "space": space = SpaceName(try reader.string())
        case "epoch": epoch = Epoch(try reader.string())
        case "head": head = try reader.sequence()
        case "role": role = Role(rawValue: try reader.string())
        case "time": time = try reader.integer()
        default: try reader.skip()
        }
      }
      guard let space, let epoch, let head, let role, let time else {
        throw reader.malformed("this is not a Ferry space")
      }
      return SpaceInfo(space: space, epoch: epoch, head: head, role: role, serverTime: time)
    }
  }
}

extension Problem {
  /// The media type of a problem document.
  package static let mediaType = "application/problem+json"

  /// The problem as it travels (RFC 9457).
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 256)
    json.raw("{\"type\":\"urn:ferry:problem:")
    json.raw(code.rawValue.utf8)
    json.raw("\",\"title\":")
    json.string(code.title)
    json.raw(",\"status\":")
    json.number(Int64(code.status))
    json.raw(",\"detail\":")
    json.string(detail)
    json.raw(",\"code\":")
    json.string(code.rawValue)
    json.raw(",\"action\":")
    json.string(code.action.rawValue)
    json.raw("}")
    return json.finish()
  }

  /// `nil` when the bytes are not a problem document with a code this version knows.
  package init?(decoding bytes: [UInt8]) {
    guard let (code, detail) = Self.members(of: bytes),
      let known = ProblemCode(rawValue: code)
    else { return nil }
    self.init(known, detail)
  }

  /// What a problem document says for a person, also one of a newer server.
  package static func detail(in bytes: [UInt8]) -> String? {
    members(of: bytes).flatMap { $0.detail.isEmpty ? nil : "\($0.detail) (\($0.code))" }
  }

  private static func members(of bytes: [UInt8]) -> (code: String, detail: String)? {
    try? decode(bytes) { (reader) throws(MalformedMessage) in
      var code = ""
      var detail = ""
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "code": code = try reader.string()
        case "detail": detail = try reader.string()
        default: try reader.skip()
        }
      }
      return (code, detail)
    }
  }
}

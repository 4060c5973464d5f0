extension Problem {
  /// The media type of a problem document.
  package static let mediaType = "application/problem+json"

  /// Returns the encoded problem (RFC 9457).
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 256 + refusals.count * 256)
    json.object { json in
      json.member("type", "urn:ferry:problem:" + code.rawValue)
      json.member("title", code.title)
      json.member("status", code.status)
      json.member("detail", detail)
      json.member("code", code.rawValue)
      json.member("action", code.action.rawValue)
      if !refusals.isEmpty {
        json.key("refusals")
        json.array(of: refusals) { json, refusal in json.refusal(refusal) }
      }
      if violationCount > 0 {
        json.member("violationCount", violationCount)
        json.key("violations")
        json.array(of: violations) { json, violation in json.violation(violation) }
      }
      if lossCount > 0 {
        json.member("lossCount", lossCount)
        json.key("losses")
        json.array(of: losses) { json, loss in json.string(loss) }
      }
    }
    return json.finish()
  }

  /// Reads a problem document; `nil` if the bytes are not one with a code known to this version.
  package init?(decoding bytes: [UInt8]) {
    guard let members = Self.members(of: bytes), let known = ProblemCode(rawValue: members.code)
    else { return nil }
    self.init(
      known, members.detail, refusals: members.refusals, violations: members.violations,
      violationCount: members.violationCount, losses: members.losses,
      lossCount: members.lossCount)
  }

  /// Returns the text of a problem document for users, even if it is of a newer server.
  package static func detail(in bytes: [UInt8]) -> String? {
    members(of: bytes).flatMap { $0.detail.isEmpty ? nil : "\($0.detail) (\($0.code))" }
  }

  private struct Members {
    var code = ""
    var detail = ""
    var refusals: [Refusal] = []
    var violations: [SchemaViolation] = []
    var violationCount = 0
    var losses: [String] = []
    var lossCount = 0
  }

  private static func members(of bytes: [UInt8]) -> Members? {
    try? decode(bytes) { (reader) throws(MalformedMessage) in
      var members = Members()
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "code": members.code = try reader.string()
        case "detail": members.detail = try reader.string()
        case "refusals":
          try reader.array { (reader) throws(MalformedMessage) in
            members.refusals.append(try reader.refusal())
          }
        case "violationCount": members.violationCount = Int(clamping: max(0, try reader.integer()))
        case "violations":
          try reader.array { (reader) throws(MalformedMessage) in
            members.violations.append(try reader.violation())
          }
        case "lossCount": members.lossCount = Int(clamping: max(0, try reader.integer()))
        case "losses":
          try reader.array { (reader) throws(MalformedMessage) in
            members.losses.append(try reader.string())
          }
        default: try reader.skip()
        }
      }
      return members
    }
  }
}

extension JSONWriter {
  fileprivate mutating func refusal(_ refusal: Refusal) {
    object { json in
      json.member("operation", refusal.operation.value)
      json.member("code", refusal.code.rawValue)
      json.member("detail", refusal.detail)
      json.member("table", refusal.table)
      json.member("record", refusal.record)
      json.member("holder", ifPresent: refusal.holder)
    }
  }
}

extension JSONReader {
  fileprivate mutating func refusal() throws(MalformedMessage) -> Refusal {
    var operation: OperationID?
    var code: String?
    var detail = ""
    var table: Name = ""
    var record: Name = ""
    var holder: Name?
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "operation": operation = OperationID(try reader.uniqueID())
      case "code": code = try reader.string()
      case "detail": detail = try reader.string()
      case "table": table = try reader.name()
      case "record": record = try reader.name()
      case "holder": if try !reader.null() { holder = try reader.name() }
      default: try reader.skip()
      }
    }
    guard let operation, let code else { throw malformed("a refusal without operation or code") }
    return Refusal(
      operation: operation, code: RefusalCode(rawValue: code), detail: detail, table: table,
      record: record, holder: holder)
  }
}

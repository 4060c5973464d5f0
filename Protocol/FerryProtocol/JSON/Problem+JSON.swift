extension Problem {
  /// The media type of a problem document.
  package static let mediaType = "application/problem+json"

  /// Returns the encoded problem (RFC 9457).
  package func encoded() -> [UInt8] {
    ProblemDocument(
      code: code.rawValue, detail: detail, refusals: refusals, violations: violations,
      losses: losses, violationCount: Int64(violationCount), lossCount: Int64(lossCount)
    ).encoded()
  }

  /// Reads a problem document; `nil` if the bytes are not one with a code known to this version.
  package init?(decoding bytes: [UInt8]) {
    guard let document = try? ProblemDocument(decoding: bytes),
      let known = ProblemCode(rawValue: document.code)
    else { return nil }
    self.init(
      known, document.detail, refusals: document.refusals, violations: document.violations,
      violationCount: Int(document.violationCount), losses: document.losses,
      lossCount: Int(document.lossCount))
  }

  /// Returns the text of a problem document for users, even if it is of a newer server.
  package static func detail(in bytes: [UInt8]) -> String? {
    guard let document = try? ProblemDocument(decoding: bytes), !document.detail.isEmpty else {
      return nil
    }
    return "\(document.detail) (\(document.code))"
  }
}

/// The document of a problem, whose code may be unknown to this version.
private struct ProblemDocument: JSONMessage {
  var (code, detail) = ("", "")
  var refusals: [Refusal] = []
  var violations: [SchemaViolation] = []
  var losses: [String] = []
  var (violationCount, lossCount): (Int64, Int64) = (0, 0)

  static var blank: Self { Self() }

  mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    let known = ProblemCode(rawValue: code)
    json.written("type", "urn:ferry:problem:" + code)
    json.written("title", known?.title)
    json.written("status", known?.status)
    try json.defaulted("detail", &detail)
    try json.defaulted("code", &code)
    json.written("action", known?.action.rawValue)
    try json.omitting("refusals", &refusals, [])
    try json.omitting("violationCount", &violationCount, 0)
    try json.omitting("violations", &violations, [])
    try json.omitting("lossCount", &lossCount, 0)
    try json.omitting("losses", &losses, [])
  }
}

extension Refusal: JSONMessage {
  package static var blank: Self {
    Self(
      operation: OperationID(DeviceID.server.value), code: .reservedTable, detail: "", table: "",
      record: "")
  }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("operation", &operation)
    try json.required("code", &code)
    try json.defaulted("detail", &detail)
    try json.defaulted("table", &table)
    try json.defaulted("record", &record)
    try json.omitting("holder", &holder, nil, as: JSONForm.value.nullable)
  }
}

extension RefusalCode: JSONString {
  package static var textRule: String { "a code is a text" }

  package init?(_ text: String) { self.init(rawValue: text) }
}

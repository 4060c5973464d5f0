/// An unknown member is refused, like another `format`: it might limit the patch further.
extension PatchDocument: JSONMessage {
  package static var noun: String? { "the patch" }
  package static var depth: Int? { 2 }
  package static var strictness: MemberStrictness { .strict }
  package static var blank: Self {
    Self(app: "", appVersions: [], behaviour: "", sequence: 0, expires: 0, script: "")
  }

  /// Reads a document and checks it whole, as ``fault(limits:)`` does.
  package init(
    decoding bytes: [UInt8], limits: PatchDocumentLimits = .standard
  ) throws(MalformedMessage) {
    var rules = ReadingRules.standard
    rules.patches = limits
    try self.init(decoding: bytes, rules, bytesMax: limits.documentBytes)
  }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    let limits = json.rules.patches
    try json.format(1)
    try json.required("app", &app)
    try json.required("appVersions", &appVersions, as: .list(max: limits.appVersions, "names"))
    try json.required("behaviour", &behaviour)
    try json.required("sequence", &sequence)
    try json.required("expires", &expires)
    try json.required("services", &services, as: .list(max: limits.services, "names"))
    try json.required("script", &script)
    try json.check(fault(limits: limits))
  }
}

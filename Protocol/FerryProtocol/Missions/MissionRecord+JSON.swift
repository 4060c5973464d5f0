/// The record in the form of the mission routes' answers: numbers of 64 bits as numbers, the
/// signature and its key in base64.
extension MissionRecord: JSONValue {
  package static var depth: Int? { 4 }

  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    let read = try MissionAnswer(from: &reader, rules)
    self = read.record
    // The name, too, shows a bundle: a record in contradiction to its name is none.
    guard read.kind == BundleListing.kind, BundleID(mission: id) != nil else { return }
    bundle = read.listing
  }

  package func write(to json: inout JSONWriter) {
    MissionAnswer(
      record: self, kind: bundle.map { _ in BundleListing.kind }, listing: bundle
    ).write(to: &json)
  }
}

/// A record while it is read or written.
private struct MissionAnswer: JSONMessage {
  var record: MissionRecord
  var kind: String?
  var listing: BundleListing?

  static var blank: Self {
    let manifest = MissionManifest.blank
    let record = MissionRecord(
      of: manifest, hash: .blank, manifestSize: 0, signature: [], signer: [], publishedAt: 0)
    return Self(record: record, kind: nil, listing: BundleListing(share: .none))
  }

  mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("mission", &record.id, missing: "this is no mission")
    try json.required("version", &record.version, as: .integer(in: 0...Limits.sequenceMax))
    try json.defaulted("items", &record.items)
    try json.required("size", &record.size, as: .integer(in: MissionRecord.sizes))
    try json.defaulted("priority", &record.priority)
    try json.required("manifestSize", &record.manifestSize, as: .integer(in: MissionRecord.sizes))
    try json.defaulted("publishedAt", &record.publishedAt)
    try json.defaulted("title", &record.title)
    try json.defaulted("summary", &record.summary)
    try json.defaulted("after", &record.after)
    try json.required("manifest", &record.manifest)
    try json.required("signature", &record.signature, as: .base64)
    try json.required("signer", &record.signer, as: .base64)
    record.bound()
    try json.optional("kind", &kind)
    guard var listing else { return }
    try json.listing(&listing)
    self.listing = listing
  }
}

/// A list of missions as `GET …/missions` answers it.
extension MissionPage: JSONMessage {
  package static var depth: Int? { 5 }
  package static var blank: Self { Self() }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.defaulted("missions", &records)
    try json.nullable("next", &next)
  }
}

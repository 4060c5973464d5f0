extension BundleReportsRequest: JSONMessage {
  package static var depth: Int? { 4 }
  package static var strictness: MemberStrictness { .once }
  package static var blank: Self { Self(device: .server, reports: []) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("device", &device)
    try json.required("reports", &reports, as: .list(max: Self.reportsMax, "reports"))
    try json.check(!reports.isEmpty, "a request has at least one report")
    var seen = Set<BundleID>()
    let other = reports.first { !seen.insert($0.bundle).inserted }
    try json.check(other.map { "bundle \($0.bundle) is a duplicate" })
  }
}

extension BundleReport: JSONMessage {
  package static var blank: Self {
    Self(.blank, .blank, .failure(BundleReason(bounding: "")), number: 0)
  }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.bundle(&bundle)
    try json.required("manifest", &manifest)
    try json.required("number", &number, as: .integer(in: 1...Self.numberMax))
    var (word, reason) = outcome.parts
    try json.required("outcome", &word)
    try json.optional("reason", &reason)
    outcome = BundleOutcome(word, reason)
  }
}

extension BundleOutcome {
  fileprivate enum Word: String, JSONWord { case success, failure }

  fileprivate var parts: (Word, BundleReason?) {
    switch self {
    case .success: (.success, nil)
    case .failure(let reason): (.failure, reason)
    }
  }

  fileprivate init(_ word: Word, _ reason: BundleReason?) {
    self = word == .success ? .success : .failure(reason ?? BundleReason(bounding: ""))
  }
}

extension BundleChangeRequest: JSONMessage {
  package static var noun: String? { "a change" }
  package static var depth: Int? { 4 }
  package static var strictness: MemberStrictness { .strict }
  package static var blank: Self { Self(version: .first) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("version", &version)
    try json.optional("rollout", &share)
    try json.optional("withdrawn", &withdrawn)
    try json.check(
      share == nil ? withdrawn == true : withdrawn == nil,
      "a change is either “rollout” or “withdrawn”, which is true")
  }
}

extension BundleShare: JSONValue {
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    guard let share = Self(hundredths: try reader.integer()) else {
      throw reader.malformed("rollout is a number from 0 to 10000, in hundredths of a percent")
    }
    self = share
  }

  package func write(to json: inout JSONWriter) { json.number(Int64(hundredths)) }
}

extension JSONMembers {
  /// The name and the version of a bundle.
  fileprivate mutating func bundle(_ id: inout BundleID) throws(MalformedMessage) {
    var (name, version) = (id.name, id.version)
    try required("bundle", &name)
    try required("version", &version)
    id = BundleID(name, version)
  }
}

// MARK: Answers

extension BundleEntry: JSONMessage {
  package static var depth: Int? { 4 }
  package static var blank: Self {
    Self(
      .blank, BundleListing(share: .none), title: "", files: 0, size: 0, manifest: .blank,
      publishedAt: 0)
  }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.bundle(&id)
    json.written("mission", id.mission)
    try json.listing(&listing)
    try json.defaulted("title", &title)
    try json.defaulted("files", &files)
    try json.defaulted("size", &size)
    try json.required("manifest", &manifest)
    try json.defaulted("publishedAt", &publishedAt, as: .wallTime)
  }
}

extension JSONMembers {
  /// The state of a bundle's version.
  mutating func listing(_ listing: inout BundleListing) throws(MalformedMessage) {
    try defaulted("rollout", &listing.share)
    try optional("minShell", &listing.minShell)
    try optional("withdrawnAt", &listing.withdrawnAt, as: .wallTime)
  }
}

/// A page of a list of bundles, as `GET …/bundles` answers it.
extension BundlePage: JSONMessage {
  package static var depth: Int? { 5 }
  package static var blank: Self { Self([], next: nil) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.defaulted("bundles", &entries)
    try json.nullable("next", &next)
  }
}

extension BundleOverview: JSONMessage {
  package static var depth: Int? { 8 }
  package static var blank: Self { Self(.blank, []) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("bundle", &name, missing: "this is no bundle")
    try json.defaulted("versions", &versions)
  }
}

extension BundleOverview.Version: JSONMessage {
  package static var blank: Self { Self(entry: .blank, tally: BundleTally()) }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try entry.members(&json)
    try json.defaulted("successes", &tally.successes)
    try json.defaulted("failures", &tally.failures)
    try json.defaulted("latest", &tally.latest)
  }
}

extension ReportedFailure: JSONMessage {
  package static var blank: Self {
    Self(device: .server, reason: BundleReason(bounding: ""), at: 0)
  }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("device", &device)
    try json.defaulted("reason", &reason)
    try json.defaulted("at", &at, as: .wallTime)
  }
}

extension BundleReportsRequest {
  /// Returns the encoded request.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 64 + reports.count * 256)
    json.object { json in
      json.member("device", device.value)
      json.key("reports")
      json.array(of: reports) { json, report in
        json.object { json in
          json.member("bundle", report.bundle.name.value)
          json.member("version", report.bundle.version.description)
          json.member("manifest", report.manifest.description)
          json.member("number", report.number)
          switch report.outcome {
          case .success: json.member("outcome", "success")
          case .failure(let reason):
            json.member("outcome", "failure")
            json.member("reason", reason.text)
          }
        }
      }
    }
    return json.finish()
  }

  /// Reads a request and checks every report.
  package init(decoding bytes: [UInt8]) throws(MalformedMessage) {
    self = try decode(bytes, depth: 4) { (reader) throws(MalformedMessage) in
      var device: DeviceID?
      var reports: [BundleReport]?
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "device":
          let id = DeviceID(try reader.uniqueID())
          guard id != .server, device == nil else {
            throw reader.malformed("device is one UUID, but not the nil UUID")
          }
          device = id
        case "reports":
          guard reports == nil else { throw reader.malformed("reports is a duplicate") }
          reports = try reader.bundleReports()
        default: try reader.skip()
        }
      }
      guard let device, let reports, !reports.isEmpty else {
        throw reader.malformed("device or reports is missing")
      }
      return BundleReportsRequest(device: device, reports: reports)
    }
  }
}

extension JSONReader {
  fileprivate mutating func bundleReports() throws(MalformedMessage) -> [BundleReport] {
    var reports: [BundleReport] = []
    var seen = Set<BundleID>()
    try array { (reader) throws(MalformedMessage) in
      guard reports.count < BundleReportsRequest.reportsMax else {
        throw reader.malformed("more than \(BundleReportsRequest.reportsMax) reports")
      }
      let report = try reader.bundleReport()
      guard seen.insert(report.bundle).inserted else {
        throw reader.malformed("bundle \(report.bundle) is a duplicate")
      }
      reports.append(report)
    }
    return reports
  }

  private mutating func bundleReport() throws(MalformedMessage) -> BundleReport {
    var (name, version) = (BundleName?.none, BundleVersion?.none)
    var (manifest, outcome) = (ContentHash?.none, String?.none)
    var number: Int64?
    var reason = BundleReason(bounding: "")
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "bundle": name = try reader.bundleName()
      case "version": version = try reader.bundleVersion("version")
      case "manifest": manifest = ContentHash(try reader.string())
      case "number": number = try reader.reportNumber()
      case "outcome": outcome = try reader.string()
      case "reason": reason = try reader.bundleReason()
      default: try reader.skip()
      }
    }
    guard let name, let version, let manifest, let number else {
      throw malformed("a report needs bundle, version, manifest and number")
    }
    let bundle = BundleID(name, version)
    switch outcome {
    case "success": return BundleReport(bundle, manifest, .success, number: number)
    case "failure": return BundleReport(bundle, manifest, .failure(reason), number: number)
    default: throw malformed("outcome is \"success\" or \"failure\"")
    }
  }

  private mutating func reportNumber() throws(MalformedMessage) -> Int64 {
    let number = try integer()
    guard 1...BundleReport.numberMax ~= number else {
      throw malformed("the number of a report is from 1 to \(BundleReport.numberMax)")
    }
    return number
  }

  fileprivate mutating func bundleReason() throws(MalformedMessage) -> BundleReason {
    guard let reason = BundleReason(checking: try string()) else {
      throw malformed(
        "a reason has at most \(BundleReason.charactersMax) characters and no control characters")
    }
    return reason
  }

  fileprivate mutating func bundleShare() throws(MalformedMessage) -> BundleShare {
    guard let share = BundleShare(hundredths: try integer()) else {
      throw malformed("rollout is a number from 0 to 10000, in hundredths of a percent")
    }
    return share
  }
}

extension BundleChangeRequest {
  /// Returns the encoded request.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 64)
    json.object { json in
      json.member("version", version.description)
      switch change {
      case .share(let share): json.member("rollout", share.hundredths)
      case .withdrawal: json.member("withdrawn", true)
      }
    }
    return json.finish()
  }

  /// Reads a request, which makes one change.
  package init(decoding bytes: [UInt8]) throws(MalformedMessage) {
    self = try decode(bytes, depth: 4) { (reader) throws(MalformedMessage) in
      var (version, share, isWithdrawn) = (BundleVersion?.none, BundleShare?.none, Bool?.none)
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "version": version = try reader.bundleVersion("version")
        case "rollout": share = try reader.bundleShare()
        case "withdrawn": isWithdrawn = try reader.bool()
        default: throw reader.malformed("a change has no member “\(try key.text().prefix(40))”")
        }
      }
      guard let version else { throw reader.malformed("version is missing") }
      switch (share, isWithdrawn) {
      case (let share?, nil): return BundleChangeRequest(version: version, change: .share(share))
      case (nil, true?): return BundleChangeRequest(version: version, change: .withdrawal)
      default:
        throw reader.malformed("a change is either “rollout” or “withdrawn”, which is true")
      }
    }
  }
}

// MARK: Answers

extension BundleEntry {
  /// Returns the encoded version.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 512)
    json.object { json in members(to: &json) }
    return json.finish()
  }

  fileprivate func members(to json: inout JSONWriter) {
    json.member("bundle", id.name.value)
    json.member("version", id.version.description)
    json.member("mission", id.mission.value)
    json.member("rollout", listing.share.hundredths)
    json.member("minShell", ifPresent: listing.minShell?.description)
    json.member("withdrawnAt", ifPresent: listing.withdrawnAt)
    json.member("title", title)
    json.member("files", files)
    json.member("size", size)
    json.member("manifest", manifest.description)
    json.member("publishedAt", publishedAt)
  }

  /// Reads a version.
  package init(decoding bytes: [UInt8]) throws(MalformedMessage) {
    self = try decode(bytes, depth: 4) { (reader) throws(MalformedMessage) in
      try reader.bundleVersionReport().entry
    }
  }

  /// Returns a list as `GET …/bundles` answers it.
  ///
  /// - Parameter next: The place at which the list continues; `nil` at the end.
  package static func encodedList(_ entries: [BundleEntry], next: MissionID?) -> [UInt8] {
    var json = JSONWriter(capacity: 64 + entries.count * 512)
    json.object { json in
      json.key("bundles")
      json.array(of: entries) { json, entry in json.object { entry.members(to: &$0) } }
      json.member("next", next?.value)
    }
    return json.finish()
  }

  /// Reads such a list.
  package static func list(
    decoding bytes: [UInt8]
  ) throws(MalformedMessage) -> (entries: [BundleEntry], next: MissionID?) {
    try decode(bytes, depth: 5) { (reader) throws(MalformedMessage) in
      var (entries, next) = ([BundleEntry](), MissionID?.none)
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "bundles": entries = try reader.bundleVersionReports().map(\.entry)
        case "next": next = try reader.nextMission()
        default: try reader.skip()
        }
      }
      return (entries, next)
    }
  }
}

extension BundleOverview {
  /// Returns the encoded bundle.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 1_024)
    json.object { json in
      json.member("bundle", name.value)
      json.key("versions")
      json.array(of: versions) { json, version in
        json.object { json in
          version.entry.members(to: &json)
          version.tally.members(to: &json)
        }
      }
    }
    return json.finish()
  }

  /// Reads a bundle.
  package init(decoding bytes: [UInt8]) throws(MalformedMessage) {
    self = try decode(bytes, depth: 8) { (reader) throws(MalformedMessage) in
      var name: BundleName?
      var versions: [(entry: BundleEntry, tally: BundleTally)] = []
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "bundle": name = try reader.bundleName()
        case "versions": versions = try reader.bundleVersionReports()
        default: try reader.skip()
        }
      }
      guard let name else { throw reader.malformed("this is no bundle") }
      return BundleOverview(name, versions)
    }
  }
}

extension BundleTally {
  fileprivate func members(to json: inout JSONWriter) {
    json.member("successes", successes)
    json.member("failures", failures)
    json.key("latest")
    json.array(of: latest) { json, failure in
      json.object { json in
        json.member("device", failure.device.value)
        json.member("reason", failure.reason.text)
        json.member("at", failure.at)
      }
    }
  }
}

extension JSONReader {
  fileprivate mutating func bundleVersionReports() throws(MalformedMessage) -> [(
    entry: BundleEntry, tally: BundleTally
  )] {
    var reports: [(entry: BundleEntry, tally: BundleTally)] = []
    try array { (reader) throws(MalformedMessage) in
      reports.append(try reader.bundleVersionReport())
    }
    return reports
  }

  /// Reads a version with the reports, if there are any.
  fileprivate mutating func bundleVersionReport() throws(MalformedMessage) -> (
    entry: BundleEntry, tally: BundleTally
  ) {
    var (name, version) = (BundleName?.none, BundleVersion?.none)
    var (listing, tally) = (BundleListing(share: .none), BundleTally())
    var (title, manifest) = ("", ContentHash?.none)
    var (files, size, publishedAt) = (Int64(0), Int64(0), Int64(0))
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "bundle": name = try reader.bundleName()
      case "version": version = try reader.bundleVersion("version")
      case "rollout": listing.share = try reader.bundleShare()
      case "minShell": listing.minShell = try reader.bundleVersion("minShell")
      case "withdrawnAt": listing.withdrawnAt = try reader.wallTime()
      case "title": title = try reader.string()
      case "files": files = try reader.integer()
      case "size": size = try reader.integer()
      case "manifest": manifest = ContentHash(try reader.string())
      case "publishedAt": publishedAt = try reader.wallTime()
      case "successes": tally.successes = try reader.integer()
      case "failures": tally.failures = try reader.integer()
      case "latest":
        try reader.array { (reader) throws(MalformedMessage) in
          tally.latest.append(try reader.reportedFailure())
        }
      default: try reader.skip()
      }
    }
    guard let name, let version, let manifest else {
      throw malformed("a bundle's name, version or manifest is missing")
    }
    let entry = BundleEntry(
      BundleID(name, version), listing, title: title, files: files, size: size,
      manifest: manifest, publishedAt: publishedAt)
    return (entry, tally)
  }

  private mutating func reportedFailure() throws(MalformedMessage) -> ReportedFailure {
    var (device, reason, at) = (DeviceID?.none, BundleReason(bounding: ""), Int64(0))
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "device": device = DeviceID(try reader.uniqueID())
      case "reason": reason = try reader.bundleReason()
      case "at": at = try reader.wallTime()
      default: try reader.skip()
      }
    }
    guard let device else { throw malformed("a failure without its device") }
    return ReportedFailure(device: device, reason: reason, at: at)
  }
}

import Ferry
import FerryCommandLine

/// The presentation of bundles.
enum BundlePresentation {
  /// Prints versions as a table, or as JSON lines.
  ///
  /// - Parameter none: the text if there are none.
  static func print(_ versions: [BundleStatus], none: String, asJSON: Bool) throws {
    let output = TextOutput.standardOutput
    if asJSON { return try output.lines(versions.map { json($0).text }) }
    guard !versions.isEmpty else { return try output.line(none) }
    try output.lines(table(versions))
  }

  /// Prints one bundle.
  static func print(
    _ name: BundleName, _ active: ActiveBundle?, _ versions: [BundleStatus], asJSON: Bool
  ) throws {
    let output = TextOutput.standardOutput
    if asJSON {
      return try output.line(
        JSONText.object([
          ("bundle", .string(name.value)), ("active", active.map(json) ?? .null),
          ("versions", .array(versions.map { json($0) })),
        ]).text)
    }
    var lines = ["bundle \(name)"]
    if let active {
      lines.append(
        "in use: version \(active.version)\(active.isConfirmed ? "" : ", on trial"), entry "
          + active.entry)
      let services = active.services.map { service in
        service.version.map { "\(service.name) \($0)" } ?? service.name
      }
      lines.append("services: \(services.isEmpty ? "none" : services.joined(separator: ", "))")
      if let folder = active.folder { lines.append("folder: \(folder)") }
    } else {
      lines.append("in use: none")
    }
    try output.lines(lines.map(\.escapedForTerminal) + table(versions))
  }

  private static func table(_ versions: [BundleStatus]) -> [String] {
    var table = TextTable(
      ["bundle", "version", "state", "offered to", "shell", "size", "title"],
      whole: ["bundle", "version"])
    for version in versions {
      table.append([
        version.id.name.value, version.id.version.description, version.state,
        version.share?.description ?? "", version.minShell?.description ?? "",
        ByteSize(bytes: Int(version.size)).text, version.title,
      ])
    }
    let failures = versions.compactMap { version in
      version.failure.map { "\(version.id) failed: \($0)".escapedForTerminal }
    }
    return table.lines(width: Terminal.current().tableWidth)
      + (failures.isEmpty ? [] : [""] + failures)
  }

  private static func json(_ version: BundleStatus) -> JSONText {
    .object([
      ("bundle", .string(version.id.name.value)),
      ("version", .string(version.id.version.description)), ("state", .string(version.state)),
      ("offered", .bool(version.isOffered)), ("withdrawn", .bool(version.isWithdrawn)),
      ("here", .bool(version.isDownloaded)), ("active", .bool(version.isActive)),
      ("confirmed", .bool(version.isConfirmed)), ("previous", .bool(version.isPrevious)),
      ("failure", .string(orNull: version.failure?.text)),
      ("percent", version.share.map { .double(Double($0.hundredths) / 100) } ?? .null),
      ("minShell", .string(orNull: version.minShell?.description)),
      ("title", .string(version.title)), ("bytes", .int(version.size)),
    ])
  }

  private static func json(_ active: ActiveBundle) -> JSONText {
    .object([
      ("version", .string(active.version.description)), ("entry", .string(active.entry)),
      ("confirmed", .bool(active.isConfirmed)),
      (
        "services",
        .array(
          active.services.map { service in
            .object([
              ("name", .string(service.name)),
              ("version", .string(orNull: service.version?.description)),
            ])
          })
      ),
      ("folder", .string(orNull: active.folder)),
    ])
  }
}

extension BundleStatus {
  /// The state in a word; empty if the version is not offered to this device.
  fileprivate var state: String {
    if isActive { return isConfirmed ? "active" : "trial" }
    if isWithdrawn { return "withdrawn" }
    if failure != nil { return "failed" }
    if isPrevious { return "previous" }
    if isDownloaded { return "here" }
    return isOffered ? "offered" : ""
  }
}

/// Describes every error about bundles: what happened, why, and what to do next.
extension BundleError: CommandFailureConvertible {
  package var commandFailure: CommandFailure {
    func failure(_ what: String, _ next: String, _ code: String) -> CommandFailure {
      CommandFailure(what, why: description, next: next, code: "bundle_\(code)")
    }
    switch kind {
    case .notFound:
      return failure(
        "the bundle is not known here",
        "`ferry pull` fetches the catalogue, and `ferry bundle list` lists the versions",
        "not_found")
    case .notOffered:
      return failure(
        "the version is not offered to this device",
        "wait for the rollout, or ask the publisher: `ferryd bundle promote`", "not_offered")
    case .failedHere:
      return failure(
        "no version is left to fetch",
        "wait for another version, or name the failed one to try it again", "failed_here")
    case .shellTooOld:
      return failure("the version needs a newer shell", "update the app", "shell_too_old")
    case .nothingToActivate:
      return failure(
        "no version can be put in use",
        "`ferry bundle list` shows the versions; `ferry bundle fetch` fetches one",
        "nothing_to_activate")
    case .notDownloaded:
      return failure(
        "the version is not on this device", "run `ferry bundle fetch` first", "not_downloaded")
    case .mission:
      return mission?.commandFailure
        ?? failure("the files of the bundle cannot be read", "fetch the bundle again", "files")
    case .database:
      return failure(
        "the bundles' database could not be used",
        "check that the disk has free space and `REPLICA.missions` is writable, then try again",
        "database")
    }
  }
}

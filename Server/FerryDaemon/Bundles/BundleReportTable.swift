import FerryCommandLine
import FerryProtocol
import FerrySyncServer

/// The output of the bundle commands.
enum BundleReportTable {
  /// The columns of the list of versions.
  static let titles = [
    "BUNDLE", "VERSION", "OFFERED", "SHELL", "FILES", "SIZE", "PUBLISHED", "TITLE",
  ]

  static func print(_ overview: BundleOverview) throws {
    let output = TextOutput.standardOutput
    var table = TextTable(["VERSION", "OFFERED", "SUCCESSES", "FAILURES", "PUBLISHED"])
    for version in overview.versions {
      let (entry, tally) = (version.entry, version.tally)
      table.append([
        entry.id.version.description, entry.state, String(tally.successes),
        String(tally.failures), RFC3339.text(milliseconds: entry.publishedAt),
      ])
    }
    try output.line("bundle \(overview.name)")
    try output.lines(table.lines(width: Terminal.current().tableWidth))
    for version in overview.versions {
      for failure in version.tally.latest {
        try output.line(
          "\(version.entry.id.version) failed on \(failure.device) at "
            + "\(RFC3339.text(milliseconds: failure.at)): "
            + "\(failure.reason)".escapedForTerminal)
      }
    }
  }
}

extension BundleEntry {
  /// The version as a row of the list.
  var cells: [String] {
    [
      id.name.value, id.version.description, state, listing.minShell?.description ?? "",
      String(files), ByteSize(bytes: Int(size)).text, RFC3339.text(milliseconds: publishedAt),
      title,
    ]
  }

  /// The devices for this version, or the withdrawal.
  fileprivate var state: String {
    listing.isWithdrawn ? "withdrawn" : listing.share.description
  }

  /// The members of the JSON.
  var fields: [(String, JSONText)] {
    [
      ("bundle", .string(id.name.value)), ("version", .string(id.version.description)),
      ("mission", .string(id.mission.value)),
      ("percent", .double(Double(listing.share.hundredths) / 100)),
      ("withdrawn", .bool(listing.isWithdrawn)),
      ("minShell", .string(orNull: listing.minShell?.description)), ("title", .string(title)),
      ("files", .int(files)), ("size", .int(size)), ("manifest", .string(manifest.description)),
      ("publishedAt", .string(RFC3339.text(milliseconds: publishedAt))),
    ]
  }

  var json: JSONText { .object(fields) }
}

extension BundleOverview {
  var json: JSONText {
    .object([
      ("bundle", .string(name.value)),
      (
        "versions",
        .array(
          versions.map { version in
            .object(
              version.entry.fields + [
                ("successes", .int(version.tally.successes)),
                ("failures", .int(version.tally.failures)),
                ("latest", .array(version.tally.latest.map(\.json))),
              ])
          })
      ),
    ])
  }
}

extension ReportedFailure {
  fileprivate var json: JSONText {
    .object([
      ("device", .string("\(device)")), ("reason", .string(reason.text)),
      ("at", .string(RFC3339.text(milliseconds: at))),
    ])
  }
}

/// The reason of a failure, as a device reports it: at most 1,000 characters, without control
/// characters.
public struct BundleReason: Hashable, Sendable, CustomStringConvertible {
  /// Characters (Unicode scalars) of a reason.
  public static let charactersMax = 1_000

  public let text: String

  /// Creates a reason from any text: replaces control characters by spaces, and cuts the text to
  /// the maximum length.
  public init(bounding text: String) {
    var scalars = String.UnicodeScalarView()
    for scalar in text.unicodeScalars.prefix(Self.charactersMax) {
      scalars.append(Self.isControl(scalar) ? " " : scalar)
    }
    self.text = String(scalars)
  }

  /// Reads a reason from outside; `nil` if it is too long or has control characters.
  package init?(checking text: String) {
    guard text.utf8.count <= 4 * Self.charactersMax,
      text.unicodeScalars.count <= Self.charactersMax,
      !text.unicodeScalars.contains(where: Self.isControl)
    else { return nil }
    self.text = text
  }

  public var description: String { text }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || 0x7F...0x9F ~= scalar.value
  }
}

/// The outcome of a version on a device.
public enum BundleOutcome: Hashable, Sendable {
  /// The page reported success.
  case success
  /// The device fell back, for this reason.
  case failure(BundleReason)
}

/// A device's report about one version (SPEC.md §31).
package struct BundleReport: Sendable, Equatable {
  package var bundle: BundleID
  /// The manifest on the device: other content under the same version does not count.
  package var manifest: ContentHash
  package var outcome: BundleOutcome
  /// Rises with each outcome of the bundle on the device: a late or repeated report does not
  /// replace a later one. From 1 to ``numberMax``.
  package var number: Int64

  /// The greatest number of a report: the greatest integer that every reader of JSON has exactly.
  package static let numberMax: Int64 = (1 << 53) - 1

  package init(
    _ bundle: BundleID, _ manifest: ContentHash, _ outcome: BundleOutcome, number: Int64
  ) {
    self.bundle = bundle
    self.manifest = manifest
    self.outcome = outcome
    self.number = number
  }
}

/// A request with reports.
package struct BundleReportsRequest: Sendable, Equatable {
  /// Reports of one request.
  package static let reportsMax = 100

  package var device: DeviceID
  /// Each version at most once.
  package var reports: [BundleReport]

  package init(device: DeviceID, reports: [BundleReport]) {
    self.device = device
    self.reports = reports
  }
}

/// A change requested by an admin.
package struct BundleChangeRequest: Sendable, Equatable {
  package var version: BundleVersion
  /// One of both is there.
  var (share, withdrawn): (BundleShare?, Bool?)

  package var change: BundleChange { share.map { .share($0) } ?? .withdrawal }

  package init(version: BundleVersion, change: BundleChange) {
    self.init(version: version)
    switch change {
    case .share(let share): self.share = share
    case .withdrawal: withdrawn = true
    }
  }

  init(version: BundleVersion) { self.version = version }
}

/// A published version of a bundle, as lists show it.
package struct BundleEntry: Sendable, Equatable {
  package var id: BundleID
  package var listing: BundleListing
  package var title: String
  /// Files, and bytes of all of them.
  package var files: Int64
  package var size: Int64
  package var manifest: ContentHash
  /// Milliseconds since 1970.
  package var publishedAt: Int64

  package init(
    _ id: BundleID, _ listing: BundleListing, title: String, files: Int64, size: Int64,
    manifest: ContentHash, publishedAt: Int64
  ) {
    self.id = id
    self.listing = listing
    self.title = title
    self.files = files
    self.size = size
    self.manifest = manifest
    self.publishedAt = publishedAt
  }

  /// `nil` for an ordinary mission.
  package init?(_ record: MissionRecord) {
    guard let id = record.bundleID, let listing = record.bundle else { return nil }
    self.init(
      id, listing, title: record.title, files: record.items, size: record.size,
      manifest: record.manifest, publishedAt: record.publishedAt)
  }
}

/// The reports about a version on a server.
package struct BundleTally: Sendable, Equatable {
  /// Devices whose last report is a success, or a failure.
  package var successes: Int64 = 0
  package var failures: Int64 = 0
  /// The latest failures, the last one first.
  package var latest: [ReportedFailure] = []

  package init(successes: Int64 = 0, failures: Int64 = 0, latest: [ReportedFailure] = []) {
    self.successes = successes
    self.failures = failures
    self.latest = latest
  }
}

/// A reported failure.
package struct ReportedFailure: Sendable, Equatable {
  package var device: DeviceID
  package var reason: BundleReason
  /// The server's clock, milliseconds since 1970.
  package var at: Int64

  package init(device: DeviceID, reason: BundleReason, at: Int64) {
    self.device = device
    self.reason = reason
    self.at = at
  }
}

/// A bundle with the latest versions and their reports.
package struct BundleOverview: Sendable, Equatable {
  /// Versions of an overview at most; lists of bundles have all of them.
  package static let versionsMax = 100

  package var name: BundleName
  /// By version, the latest first.
  package var versions: [Version]

  /// A version with the reports about it.
  package struct Version: Sendable, Equatable {
    package var entry: BundleEntry
    package var tally: BundleTally

    package init(entry: BundleEntry, tally: BundleTally) {
      (self.entry, self.tally) = (entry, tally)
    }
  }

  package init(_ name: BundleName, _ versions: [Version]) {
    self.name = name
    self.versions = versions
  }
}

/// A part of the list of a space's bundles.
package struct BundlePage: Sendable, Equatable {
  package var entries: [BundleEntry]
  /// The place at which the list continues; `nil` at the end.
  package var next: MissionID?

  package init(_ entries: [BundleEntry], next: MissionID?) {
    (self.entries, self.next) = (entries, next)
  }
}

import FerryProtocol

/// The state of one bundle on a device's disk at one moment, read by an observer.
package struct BundleEvidence: Sendable, Equatable {
  /// The outcome of a version on the device.
  package struct Outcome: Sendable, Hashable {
    package var version: BundleVersion
    /// The reason of a failure; `nil` for a success.
    package var failure: String?
    /// True if the version may not be activated without a user's request.
    package var isBlocked: Bool
    /// True if the device has an answer to the report.
    package var isReported: Bool

    package init(
      _ version: BundleVersion, failure: String?, isBlocked: Bool, isReported: Bool
    ) {
      (self.version, self.failure) = (version, failure)
      (self.isBlocked, self.isReported) = (isBlocked, isReported)
    }
  }

  package var name: BundleName
  /// The version in use.
  package var active: BundleVersion?
  /// True if a page of it has worked.
  package var isConfirmed: Bool
  package var outcomes: [Outcome]
  /// The files in the folder of the version in use, by path; `nil` if there is no complete version.
  package var files: [String: ContentHash]?

  package init(
    _ name: BundleName, active: BundleVersion?, isConfirmed: Bool = false,
    outcomes: [Outcome] = [], files: [String: ContentHash]? = nil
  ) {
    (self.name, self.active, self.isConfirmed) = (name, active, isConfirmed)
    (self.outcomes, self.files) = (outcomes, files)
  }

  /// The version in use, with the bundle's name.
  package var activeID: BundleID? { active.map { BundleID(name, $0) } }
}

/// The versions in a catalogue, and the reading device.
package struct BundleCatalogue: Sendable, Equatable {
  /// A version.
  package struct Entry: Sendable, Equatable {
    /// The share of devices for the version.
    package var share: BundleShare
    package var isWithdrawn: Bool
    /// The oldest supported shell; `nil` for any.
    package var minShell: BundleVersion?

    package init(share: BundleShare, isWithdrawn: Bool = false, minShell: BundleVersion? = nil) {
      (self.share, self.isWithdrawn, self.minShell) = (share, isWithdrawn, minShell)
    }
  }

  /// The device's identifier at this moment.
  package var device: DeviceID
  /// The version of the device's shell.
  package var shell: BundleVersion
  package var entries: [BundleID: Entry]

  package init(device: DeviceID, shell: BundleVersion, entries: [BundleID: Entry]) {
    (self.device, self.shell, self.entries) = (device, shell, entries)
  }

  /// Returns `true` if a user of the device may put a version in use: it is not withdrawn, and the
  /// shell is not too old.
  package func permits(_ id: BundleID) -> Bool {
    guard let entry = entries[id], !entry.isWithdrawn else { return false }
    return entry.minShell.map { $0 <= shell } ?? true
  }

  /// Returns `true` if the device takes a version without a user's request.
  package func offers(_ id: BundleID) -> Bool {
    guard permits(id), let entry = entries[id] else { return false }
    return BundleRollout.includes(device, in: entry.share, of: id)
  }

  /// Returns the latest offered version of a bundle, except some.
  package func best(of name: BundleName, except failed: Set<BundleID>) -> BundleID? {
    entries.keys.filter { $0.name == name && !failed.contains($0) && offers($0) }.max()
  }
}

/// An event of bundles in a run, as the oracles receive it. Devices are named by the harness.
package enum BundleRunEvent: Sendable {
  /// A publisher is about to publish a version with these files.
  case publishing(BundleID, [String: ContentHash])
  /// The device's catalogue, at a moment in microseconds of virtual time.
  case listed(device: String, at: Int64, BundleCatalogue)
  /// The harness looked at the disk. Looks come at any moment, also right after a process died.
  case looked(device: String, at: Int64, [BundleEvidence])
  /// A page of a version has read all files.
  case showed(device: String, BundleID, [String: ContentHash])
  /// A user names a version to put in use: from now on it gets another chance.
  case naming(device: String, BundleID)
  /// The user's request has ended, with success or not.
  case named(device: String, BundleID)
  /// A page works, and the shell is about to record this.
  case confirming(device: String, BundleID)
  /// A page does not work, and the shell is about to leave the version for this reason.
  case failing(device: String, BundleID, reason: String)
  /// The process died, and all requests with it.
  case died(device: String)
  /// The device's files were replaced by an earlier copy.
  case wentBack(device: String)
  /// `device` continues with a copy of another device's files.
  case copied(device: String, from: String)
  /// The server is about to handle a request with reports, which may be late or a repeated one.
  case reporting(device: String, BundleReportsRequest, number: Int)
  /// The server has answered this request; `isKept` if it stored the reports.
  case reported(number: Int, isKept: Bool)
}

/// The bundles of one space at the end of a run, when everything has drained.
package struct FinalBundleEvidence: Sendable {
  /// The devices whose newest report about a version is a success, or a failure.
  package struct Counts: Sendable, Equatable {
    package var successes: Int
    package var failures: Int

    package init(successes: Int, failures: Int) {
      (self.successes, self.failures) = (successes, failures)
    }
  }

  /// One device.
  package struct Device: Sendable {
    package var name: String
    /// The device's identifier, and the shell.
    package var id: DeviceID
    package var shell: BundleVersion
    /// The bundles opened by the user.
    package var opened: Set<BundleName>
    package var bundles: [BundleEvidence]

    package init(
      name: String, id: DeviceID, shell: BundleVersion, opened: Set<BundleName>,
      bundles: [BundleEvidence]
    ) {
      (self.name, self.id, self.shell) = (name, id, shell)
      (self.opened, self.bundles) = (opened, bundles)
    }
  }

  /// The published versions on the server.
  package var published: [BundleID: BundleCatalogue.Entry]
  /// As the server shows them to an admin.
  package var counts: [BundleID: Counts]
  /// In order.
  package var devices: [Device]

  package init(
    published: [BundleID: BundleCatalogue.Entry], counts: [BundleID: Counts], devices: [Device]
  ) {
    (self.published, self.counts, self.devices) = (published, counts, devices)
  }
}

/// Judges one property of bundles in a run.
package protocol BundleOracle {
  /// A name of the property.
  static var name: String { get }
  /// Reads an event while the run goes on.
  mutating func see(_ event: BundleRunEvent) -> [Violation]
  /// Reads the state at the end, when everything has drained.
  mutating func judge(_ final: FinalBundleEvidence) -> [Violation]
}

extension BundleOracle {
  package mutating func see(_ event: BundleRunEvent) -> [Violation] { [] }
  package mutating func judge(_ final: FinalBundleEvidence) -> [Violation] { [] }
}

/// All oracles on the bundles of a run.
package struct BundleBench {
  /// Violations reported by each oracle at the end.
  private static let reportedMax = 10

  private var oracles: [any BundleOracle] = [
    BundlesKept(), FailuresKept(), RolloutsKept(), OutcomesCounted(), BundlesDelivered(),
  ]

  package init() {}

  package mutating func see(_ event: BundleRunEvent) -> [Violation] {
    var found: [Violation] = []
    for index in oracles.indices { found += oracles[index].see(event) }
    return found
  }

  package mutating func judge(_ final: FinalBundleEvidence) -> [Violation] {
    var found: [Violation] = []
    for index in oracles.indices { found += oracles[index].judge(final).prefix(Self.reportedMax) }
    return found
  }
}

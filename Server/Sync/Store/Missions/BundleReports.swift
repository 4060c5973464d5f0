import FerryProtocol

/// Decides whether a principal's report is kept (SPEC.md §31); pure.
enum BundleReportRule {
  /// The facts about a report.
  struct Facts: Sendable, Equatable {
    /// The reporting principal.
    var principal: Principal
    /// The owner of the device; `nil` if it has sent no packet.
    var owner: Principal?
    /// The principal of this device's former report about the version.
    var reporter: Principal?
    /// The number of the report.
    var number: Int64
    /// The number of the device's kept report about the version; `nil` if there is none.
    var kept: Int64?
    /// Devices by which the principal's account has reported about the version. Not read if this device
    /// is one of them.
    var devices: Int64
    /// The limit of those.
    var quota: Int64
  }

  enum Verdict: Sendable, Equatable {
    case keep
    /// The device is another principal's.
    case foreign
    /// The device has sent a later report, which arrived before.
    case outdated
    /// The principal reports by too many devices.
    case tooMany
  }

  static func judge(_ facts: Facts) -> Verdict {
    let holder = facts.owner ?? facts.reporter
    if let holder, holder != facts.principal, holder != .anonymous { return .foreign }
    if let kept = facts.kept, facts.number < kept { return .outdated }
    if facts.reporter == facts.principal || facts.devices < facts.quota { return .keep }
    return .tooMany
  }
}

/// The reports of one space in either store.
struct BundleReports {
  let space: Int64

  static let former = PlainStatement(
    "bundle_report_former",
    """
    SELECT principal, number, account, failed FROM bundle_reports
    WHERE space = $1 AND mission = $2 AND device = $3
    """)

  static let save = PlainStatement(
    "bundle_report_save",
    """
    INSERT INTO bundle_reports(space, mission, device, principal, number, failed, reason, at,
      account)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (space, mission, device) DO UPDATE SET principal = excluded.principal,
      account = excluded.account, number = excluded.number, failed = excluded.failed, reason = excluded.reason,
      at = excluded.at
    """)

  /// A device's former report about a version.
  private struct Former {
    let principal: Principal?
    let number: Int64
    let account: String
    let hasFailed: Bool
  }

  /// Stores reports in the transaction of the caller.
  ///
  /// - Parameter owner: The owner of the device; `nil` if it has none.
  func store(
    _ reports: [BundleReport], of device: DeviceID, owner: Principal?, now: Int64,
    by principal: Principal, quota: Int64, on connection: any PlainConnection
  ) throws -> Result<Int, Problem> {
    // One after another in a space, and none after the retraction of its version.
    try connection.lock(space)
    var kept = 0
    for report in reports where try isPublished(report, on: connection) {
      let place: [PlainValue] = [
        .integer(space), .text(report.bundle.mission.value), .text(device.value.description),
      ]
      let former = try former(at: place, on: connection)
      let facts = BundleReportRule.Facts(
        principal: principal, owner: owner, reporter: former?.principal, number: report.number,
        kept: former?.number,
        devices: former?.principal == principal
          ? 1 : try count(of: report.bundle, principal.account.id, on: connection).devices,
        quota: quota)
      switch BundleReportRule.judge(facts) {
      case .keep: break
      case .outdated: continue
      case .foreign: return .failure(.foreignReport(device))
      case .tooMany: return .failure(.tooManyReporters(quota, of: report.bundle))
      }
      var reason: String?
      if case .failure(let text) = report.outcome { reason = text.text }
      try connection.run(
        Self.save,
        place + [
          .text(principal.id), .integer(report.number), .integer(reason == nil ? 0 : 1),
          .text(reason), .integer(now), .text(principal.account.id),
        ])
      try recount(
        report.bundle, former, principal.account.id, hasFailed: reason != nil, on: connection)
      kept += 1
    }
    return .success(kept)
  }

  private func former(
    at place: [PlainValue], on connection: any PlainConnection
  ) throws -> Former? {
    try connection.rows(Self.former, place) { row in
      Former(
        principal: Principal(try row.text(0)), number: try row.integer(1),
        account: try row.text(2), hasFailed: try row.integer(3) != 0)
    }.first
  }

  /// Returns whether the version is published with the reported content.
  private func isPublished(
    _ report: BundleReport, on connection: any PlainConnection
  ) throws -> Bool {
    let mission = report.bundle.mission
    let record = MissionRecord(
      mission, stored: try connection.record(MissionChange.key(mission), in: space))
    return record?.bundle != nil && record?.manifest == report.manifest
  }

  // MARK: Counts

  /// The devices that reported about a version, for all accounts together.
  private static let everybody = ""

  static let counted = PlainStatement(
    "bundle_counted",
    """
    SELECT successes, failures FROM bundle_counts
    WHERE space = $1 AND mission = $2 AND account = $3
    """)

  static let recount = PlainStatement(
    "bundle_recount",
    """
    INSERT INTO bundle_counts(space, mission, account, successes, failures)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (space, mission, account) DO UPDATE SET
      successes = bundle_counts.successes + excluded.successes,
      failures = bundle_counts.failures + excluded.failures
    """)

  /// Devices by the outcomes of their last reports.
  private struct Count {
    var successes: Int64 = 0
    var failures: Int64 = 0
    var devices: Int64 { successes + failures }
  }

  /// Returns the devices of an account that have reported about a version. One row has the number: a
  /// report costs the same, however many devices there are.
  private func count(
    of bundle: BundleID, _ account: String, on connection: any PlainConnection
  ) throws -> Count {
    try connection.rows(
      Self.counted, [.integer(space), .text(bundle.mission.value), .text(account)]
    ) { Count(successes: try $0.integer(0), failures: try $0.integer(1)) }.first ?? Count()
  }

  /// Counts a device by its new report instead of its former one.
  private func recount(
    _ bundle: BundleID, _ former: Former?, _ account: String, hasFailed: Bool,
    on connection: any PlainConnection
  ) throws {
    func count(_ hasFailed: Bool, _ change: Int64) -> [Int64] {
      hasFailed ? [0, change] : [change, 0]
    }
    var changes: [(account: String, numbers: [Int64])] = []
    if former?.account != account || former?.hasFailed != hasFailed {
      changes += [Self.everybody, account].map { ($0, count(hasFailed, 1)) }
      if let former {
        changes += [Self.everybody, former.account].map { ($0, count(former.hasFailed, -1)) }
      }
    }
    for (account, numbers) in changes {
      try connection.run(
        Self.recount,
        [.integer(space), .text(bundle.mission.value), .text(account)]
          + numbers.map { .integer($0) })
    }
  }

  // MARK: Reading

  static let latest = PlainStatement(
    "bundle_failures",
    """
    SELECT device, reason, at FROM bundle_reports
    WHERE space = $1 AND mission = $2 AND failed = 1 ORDER BY at DESC, device LIMIT $3
    """)

  func tally(
    of bundle: BundleID, latest: Int, on connection: any PlainConnection
  ) throws -> BundleTally {
    let place: [PlainValue] = [.integer(space), .text(bundle.mission.value)]
    let count = try count(of: bundle, Self.everybody, on: connection)
    var tally = BundleTally(successes: count.successes, failures: count.failures)
    tally.latest = try connection.rows(Self.latest, place + [.integer(Int64(latest))]) { row in
      guard let device = DeviceID(try row.text(0)) else { return nil }
      return ReportedFailure(
        device: device, reason: BundleReason(bounding: try row.optionalText(1) ?? ""),
        at: try row.integer(2))
    }.compactMap { (failure: ReportedFailure?) in failure }
    return tally
  }

  /// Forget the reports about a mission; for the transaction that retracts it.
  static let forget = [
    PlainStatement(
      "bundle_reports_forget", "DELETE FROM bundle_reports WHERE space = $1 AND mission = $2"),
    PlainStatement(
      "bundle_counts_forget", "DELETE FROM bundle_counts WHERE space = $1 AND mission = $2"),
  ]

  static let forgetSome = PlainStatement(
    "bundle_reports_forget_some",
    """
    DELETE FROM bundle_reports WHERE space = $1 AND mission = $2 AND device IN (
      SELECT device FROM bundle_reports WHERE space = $1 AND mission = $2 ORDER BY device LIMIT $3)
    RETURNING account, failed
    """)

  /// Forgets some of the reports about a mission that is about to be retracted. The counts stay right.
  ///
  /// - Returns: The number of reports; less than `limit` if they were the last ones.
  func forget(
    _ mission: MissionID, upTo limit: Int, on connection: any PlainConnection
  ) throws -> Int {
    let gone = try connection.rows(
      Self.forgetSome, [.integer(space), .text(mission.value), .integer(Int64(limit))]
    ) { (account: try $0.text(0), hasFailed: try $0.integer(1) != 0) }
    var counts: [String: Count] = [:]
    for report in gone {
      for account in [Self.everybody, report.account] {
        if report.hasFailed {
          counts[account, default: Count()].failures -= 1
        } else {
          counts[account, default: Count()].successes -= 1
        }
      }
    }
    for (account, count) in counts.sorted(by: { $0.key < $1.key }) {
      try connection.run(
        Self.recount,
        [
          .integer(space), .text(mission.value), .text(account), .integer(count.successes),
          .integer(count.failures),
        ])
    }
    return gone.count
  }
}

extension Problem {
  fileprivate static func foreignReport(_ device: DeviceID) -> Problem {
    Problem(
      .deviceTaken,
      "device \(device) belongs to another user: report as a device of your own")
  }

  fileprivate static func tooManyReporters(_ quota: Int64, of bundle: BundleID) -> Problem {
    Problem(
      .storageQuota,
      "you have reported about bundle \(bundle) as \(quota) devices, which is the quota")
  }
}

import FerryProtocol

/// A change of the missions in force, by operations of the server's on the catalogue's records;
/// pure.
package enum MissionChange {
  /// Returns the record of a mission.
  package static func key(_ id: MissionID) -> RecordKey {
    RecordKey(table: MissionRecord.table, record: Name(id.value))
  }

  /// The most missions in force in a space: each device keeps the whole catalogue.
  package static let countMax = MissionLimits.standard.missions

  /// The data for the store to write, with the record after the change.
  package struct Decision: Sendable, Equatable {
    package let record: MissionRecord
    /// Empty if the record is in force already.
    package let effects: IngestEffects
  }

  /// Decides about a mission to publish.
  ///
  /// - Parameters:
  ///   - last: The last published version; 0 if there is none.
  ///   - stored: The present record of the catalogue; `nil` if there is none.
  ///   - count: The missions in force, if this one is not; see ``countMax``.
  ///   - random: For the operation's identifier.
  package static func publish(
    _ record: MissionRecord, last: Int64, stored: RecordState?,
    count: @autoclosure () throws -> Int,
    in space: SpaceState, now: Int64, random: UInt64
  ) rethrows -> Result<Decision, Problem> {
    // The client repeats a request after a lost answer.
    if let current = MissionRecord(record.id, stored: stored), record.isSame(as: current) {
      return .success(Decision(record: current, effects: IngestEffects(space: space)))
    }
    if let current = MissionRecord(record.id, stored: stored),
      let problem = current.problem(replacedBy: record)
    {
      return .failure(problem)
    }
    guard record.version == last + 1 else {
      return .failure(.staleMission(record.id, record.version, last: last))
    }
    if stored?.isAlive != true {
      let count = try count()
      guard count < countMax else { return .failure(.tooManyMissions(count)) }
    }
    var effects = IngestEffects(space: space)
    effects.writeAsServer(
      key(record.id), record.columns, over: stored, now: now, random: random)
    return .success(Decision(record: record, effects: effects))
  }

  /// Returns the reason why a mission may not be published over the one in force, if one of them is
  /// a bundle. A version of a bundle has one content for good, and a withdrawn one does not return.
  ///
  /// - Parameter isSameDocument: Whether both have the same content.
  package static func problem(
    publishing manifest: MissionManifest, isSameDocument: Bool, over current: MissionRecord
  ) -> Problem? {
    guard current.bundle != nil || manifest.bundle != nil else { return nil }
    guard let id = current.bundleID, manifest.bundle != nil, isSameDocument else {
      return .otherContent(current.id)
    }
    return current.bundle?.isWithdrawn == true ? .withdrawnBundle(id) : nil
  }

  /// Decides about a change of a bundle's version: no effects if it is in force already.
  package static func change(
    _ id: BundleID, by change: BundleChange, stored: RecordState?, in space: SpaceState,
    now: Int64, random: UInt64
  ) -> Result<Decision, Problem> {
    guard var record = MissionRecord(id.mission, stored: stored), var listing = record.bundle
    else { return .failure(.unknownBundle(id)) }
    switch change {
    case .share where listing.isWithdrawn: return .failure(.withdrawnBundle(id))
    case .share(let share): listing.share = share
    case .withdrawal: listing.withdrawnAt = listing.withdrawnAt ?? now
    }
    var effects = IngestEffects(space: space)
    if listing != record.bundle {
      record.bundle = listing
      effects.writeAsServer(
        key(id.mission), listing.stateColumns, over: stored, now: now, random: random)
    }
    return .success(Decision(record: record, effects: effects))
  }

  /// Decides about a mission to retract: no effects if it is not in force.
  package static func retract(
    _ id: MissionID, stored: RecordState?, in space: SpaceState, now: Int64, random: UInt64
  ) -> IngestEffects {
    var effects = IngestEffects(space: space)
    if stored?.isAlive == true {
      effects.writeAsServer(key(id), nil, over: stored, now: now, random: random)
    }
    return effects
  }
}

extension MissionRecord {
  /// Creates the mission of a catalogue record; `nil` if the mission was retracted.
  init?(_ id: MissionID, stored state: RecordState?) {
    guard let state, state.isAlive else { return nil }
    self.init(id: id.value) { name in state.columns.first { $0.name == name }?.value }
  }

  /// Returns the reason why another record may not replace this one. A bundle's version has one
  /// content for good, but another key may sign it.
  func problem(replacedBy other: MissionRecord) -> Problem? {
    if bundle == nil, other.bundle == nil { return nil }
    let isSignedAgain = bundle != nil && other.bundle != nil && signer != other.signer
    return isSignedAgain && bundle?.isWithdrawn == false ? nil : .otherContent(id)
  }

  /// Returns whether it is about the same document, signed by the same key.
  fileprivate func isSame(as other: MissionRecord) -> Bool {
    version == other.version && manifest == other.manifest && signer == other.signer
  }
}

extension Problem {
  package static func unknownBundle(_ id: BundleID) -> Problem {
    Problem(.notFound, "there is no version \(id.version) of bundle \(id.name)")
  }

  fileprivate static func otherContent(_ id: MissionID) -> Problem {
    let name = BundleID(mission: id).map { "version \($0.version) of bundle \($0.name)" }
    return Problem(
      .missionConflict,
      "\(name ?? "mission \(id)") is published already with other content: publish it as another "
        + "version")
  }

  fileprivate static func withdrawnBundle(_ id: BundleID) -> Problem {
    Problem(
      .missionConflict,
      "version \(id.version) of bundle \(id.name) was withdrawn, and devices have left it: publish "
        + "another version")
  }

  fileprivate static func tooManyMissions(_ count: Int) -> Problem {
    Problem(
      .storageQuota,
      "the space has \(count) missions and versions of bundles, and no more are allowed: retract one"
    )
  }

  package static func staleMission(_ id: MissionID, _ version: Int64, last: Int64) -> Problem {
    Problem(
      .missionConflict,
      "the document is version \(version) of mission \(id), but the next version is \(last + 1): "
        + "read the published mission, and publish as version \(last + 1) or without a version")
  }
}

extension BundleChange {
  /// The action in the audit log.
  var action: AuditAction {
    switch self {
    case .share: .bundleRolledOut
    case .withdrawal: .bundleWithdrawn
    }
  }

  /// Returns the text of the audit entry.
  func detail(of id: BundleID) -> String {
    switch self {
    case .share(let share): "\(id) to \(share)"
    case .withdrawal: "\(id)"
    }
  }
}

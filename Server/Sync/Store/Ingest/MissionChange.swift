import FerryProtocol

/// A change of the missions in force, by operations of the server's on the catalogue's records;
/// pure.
package enum MissionChange {
  /// Returns the record of a mission.
  package static func key(_ id: MissionID) -> RecordKey {
    RecordKey(table: MissionRecord.table, record: Name(id.value))
  }

  /// The data for the store to write, with the record after the change.
  package struct Decision: Sendable, Equatable {
    package let record: MissionRecord
    /// Empty if the record is in force already.
    package let effects: IngestEffects
  }

  /// Decides about a mission to publish.
  ///
  /// - Parameters:
  ///   - last: The last version that was published; 0 if none was.
  ///   - stored: The catalogue's record as it is; `nil` if there is none.
  ///   - random: For the operation's identifier.
  package static func publish(
    _ record: MissionRecord, last: Int64, stored: RecordState?, in space: SpaceState, now: Int64,
    random: UInt64
  ) -> Result<Decision, Problem> {
    // The client repeats a request if its answer was lost.
    if let current = MissionRecord(record.id, stored: stored), record.isSame(as: current) {
      return .success(Decision(record: current, effects: IngestEffects(space: space)))
    }
    guard record.version == last + 1 else {
      return .failure(.staleMission(record.id, record.version, last: last))
    }
    var effects = IngestEffects(space: space)
    effects.writeAsServer(
      key(record.id), record.columns, over: stored, now: now, random: random)
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
  /// Creates the mission that a record of the catalogue holds; `nil` if it was retracted.
  init?(_ id: MissionID, stored state: RecordState?) {
    guard let state, state.isAlive else { return nil }
    self.init(id: id.value) { name in state.columns.first { $0.name == name }?.value }
  }

  /// Returns whether it is about the same document, signed by the same key.
  fileprivate func isSame(as other: MissionRecord) -> Bool {
    version == other.version && manifest == other.manifest && signer == other.signer
  }
}

extension Problem {
  package static func staleMission(_ id: MissionID, _ version: Int64, last: Int64) -> Problem {
    Problem(
      .missionConflict,
      "the document is version \(version) of mission \(id), but the next version is \(last + 1): "
        + "read the published mission, and publish as version \(last + 1) or without a version")
  }
}

import FerryProtocol

extension TableRules {
  /// Returns rules by which every column of the sample records has this policy.
  static func all(_ policy: ConflictPolicy, deletes: DeletePolicy = .deleteWins) -> TableRules {
    TableRules(policy: policy, deletes: deletes)
  }
}

extension RecordState {
  /// Merges acts at sequences 1, 2, 3, … by these rules.
  init(_ acts: [Act], rules: TableRules) {
    self.init()
    for (index, act) in acts.enumerated() { _ = merge(act, at: Int64(index + 1), rules: rules) }
  }

  mutating func merge(_ act: Act, at sequence: SequenceNumber, rules: TableRules) -> Outcome {
    merge(act.operation, stamp: act.stamp, sequence: sequence, rules: rules)
  }
}

extension Act {
  /// Returns an update with additions to counters.
  static func add(
    at time: Int64, by device: UInt64 = 1, _ amounts: [Name: Int64], base: SequenceNumber = 0
  ) -> Act {
    var act = Act(
      .update, at: time, by: device,
      amounts.sorted { $0.key < $1.key }.map { Column($0.key, .integer($0.value)) }, base: base)
    act.operation.increments = Set(amounts.keys)
    return act
  }

  /// Returns an update of one text, with the author's original.
  static func edit(
    at time: Int64, by device: UInt64 = 1, _ text: Value, from original: Value,
    base: SequenceNumber = 0
  ) -> Act {
    var act = Act(.update, at: time, by: device, [Column("a", text)], base: base)
    act.operation.originals = [Column("a", original)]
    return act
  }
}

extension Conflict {
  /// Returns a conflict of two writes of the samples.
  static func sample(
    _ column: Name?, _ lost: Value, _ loser: Stamp, _ winner: Stamp, asks: Bool = false
  ) -> Conflict {
    Conflict(column: column, lost: lost, loser: loser, winner: winner, isQuestion: asks)
  }
}

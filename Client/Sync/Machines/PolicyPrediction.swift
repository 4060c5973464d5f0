import FerryProtocol

extension RemoteChange {
  /// What the server will make of a record on which own operations are pending, where its table
  /// has policies: the same merge as the server's, as far as the change tells of the record.
  static func predictedEffect(
    of state: RecordState, pending: [Operation], device: DeviceID, rules: TableRules
  ) -> RowEffect {
    let own = OwnWrites(pending, device: device)
    let isDead = state.deleted != nil && !state.isAlive
    let decided = decided(state, pending, device, rules)
    guard decided.isAlive else { return isDead || !own.endsDeleted ? .delete : .none }
    // The row here is what an own operation makes of it already.
    if isDead { return .none }
    if own.endsDeleted {
      // The own delete loses. What the change does not tell comes when the server has decided.
      return state.inserted == nil ? .none : .upsert(decided.columns, isWhole: true, kept: [])
    }
    let columns = state.columns.compactMap { column in
      decided.columns.first { $0.name == column.name }
    }
    let isWhole = state.inserted != nil && own.inserted == nil
    if columns.isEmpty && !isWhole { return .none }
    // Of what is not told, an increment says no more than how much is added to it.
    let knowsAll = isWhole || own.inserted != nil
    let kept = decided.columns.filter { column in
      own.columns[column.name] != nil
        && (knowsAll || !pending.contains { $0.increments.contains(column.name) })
    }
    return .upsert(columns, isWhole: isWhole, kept: kept.map { Column($0.name, $0.value) })
  }

  private static func decided(
    _ state: RecordState, _ pending: [Operation], _ device: DeviceID, _ rules: TableRules
  ) -> RecordState {
    var decided = state
    if decided.inserted == nil {
      // A change that gives some columns is of a record that is there, one of a tombstone of a
      // record that was.
      let first = Stamp(time: .zero, device: DeviceID(UniqueID(high: 0, low: 0)))
      decided.inserted = SequencedStamp(stamp: first, sequence: 0)
    }
    for operation in pending {
      _ = decided.merge(
        operation, stamp: Stamp(time: operation.time, device: device), sequence: .max,
        rules: rules)
    }
    return decided
  }
}

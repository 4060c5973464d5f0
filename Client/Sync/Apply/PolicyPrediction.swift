import FerryProtocol

extension RemoteChange {
  /// Predicts the server's result for a record with own pending operations in a table with
  /// policies. It merges as the server does, with the columns of the change.
  static func predictedEffect(
    of state: RecordState, pending: [SyncOperation], device: DeviceID, rules: TableRules
  ) -> RowEffect {
    let own = OwnWrites(pending, device: device)
    let isDead = state.deleted != nil && !state.isAlive
    let decided = decided(state, pending, device, rules)
    guard decided.isAlive else { return isDead || !own.endsDeleted ? .delete : .none }
    // The row here already has the effect of an own operation.
    if isDead { return .none }
    if own.endsDeleted {
      // The own delete loses. The columns missing from the change come after the server's decision.
      return state.inserted == nil ? .none : .upsert(decided.columns, isWhole: true, kept: [])
    }
    let columns = state.columns.compactMap { column in
      decided.columns.first { $0.name == column.name }
    }
    let isWhole = state.inserted != nil && own.inserted == nil
    if columns.isEmpty && !isWhole { return .none }
    // If the change omits a column, an increment has only the added amount.
    let knowsAll = isWhole || own.inserted != nil
    let kept = decided.columns.filter { column in
      own.columns[column.name] != nil
        && (knowsAll || !pending.contains { $0.increments.contains(column.name) })
    }
    return .upsert(columns, isWhole: isWhole, kept: kept.map { Column($0.name, $0.value) })
  }

  private static func decided(
    _ state: RecordState, _ pending: [SyncOperation], _ device: DeviceID, _ rules: TableRules
  ) -> RecordState {
    var decided = state
    if decided.inserted == nil {
      // A change with some columns means that the record exists; a change with a tombstone means
      // that it existed.
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

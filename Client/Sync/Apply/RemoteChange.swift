import FerryProtocol

/// The effect of a remote change on the local row.
enum RowEffect: Sendable, Equatable {
  case none
  case delete
  /// Columns to set. With `isWhole` the change has the whole record: other columns return to their
  /// defaults, except for `kept`. An existing row keeps the pending values of `kept`; a new row
  /// begins with them.
  case upsert([ColumnState], isWhole: Bool, kept: [Column])

  /// True if it sets columns.
  var isWrite: Bool {
    if case .upsert = self { true } else { false }
  }
}

/// Compares a change from the server with this device's pending operations on the record (SPEC.md
/// §5, §6). So the user sees the server's decision at once.
enum RemoteChange {
  /// Returns the effect of a change on the row. `pending` is in the order of recording, and has
  /// only operations without an effect in `state` yet.
  static func effect(
    of state: RecordState, pending: [SyncOperation], device: DeviceID, rules: TableRules = .standard
  ) -> RowEffect {
    guard !pending.isEmpty else {
      if state.deleted != nil && !state.isAlive { return .delete }
      return state.columns.isEmpty && state.inserted == nil
        ? .none : .upsert(state.columns, isWhole: state.inserted != nil, kept: [])
    }
    if !rules.isPlain || pending.contains(where: { !$0.increments.isEmpty }) {
      return predictedEffect(of: state, pending: pending, device: device, rules: rules)
    }
    let own = OwnWrites(pending, device: device)
    if let deleted = state.deleted, !state.isAlive {
      if let inserted = own.inserted, inserted > deleted.stamp { return .none }
      return .delete
    }
    if let deleted = own.deleted, own.endsDeleted {
      guard let inserted = state.inserted, inserted.stamp > deleted else { return .none }
      return .upsert(state.columns, isWhole: true, kept: [])
    }
    let columns = state.columns.filter { column in
      // The own insert does not restore values from before the own delete.
      if let deleted = own.deleted, column.stamp < deleted { return false }
      guard let mine = own.columns[column.name]?.stamp else { return true }
      return Resolution.resolve(existing: mine, incoming: column.stamp) != .existing
    }
    let isWhole = state.inserted != nil
    if columns.isEmpty && !isWhole { return .none }
    return .upsert(columns, isWhole: isWhole, kept: own.values)
  }
}

/// The writes of this device's pending operations to one record. A re-uploaded row is recorded
/// after later writes to it, with an older time.
struct OwnWrites {
  var inserted: Stamp?
  var deleted: Stamp?
  var endsDeleted = false
  /// The last value of each column, and the time of the write.
  private(set) var columns: [Name: (stamp: Stamp, value: Value)] = [:]

  /// The values, by column name.
  var values: [Column] {
    columns.sorted { $0.key < $1.key }.map { Column($0.key, $0.value.value) }
  }

  init(_ operations: [SyncOperation], device: DeviceID) {
    for operation in operations {
      let stamp = Stamp(time: operation.time, device: device)
      switch operation.kind {
      case .insert:
        inserted = inserted.map { max($0, stamp) } ?? stamp
        endsDeleted = false
      // A batch counts as an effect on this record.
      case .update, .batch: break
      case .delete:
        deleted = stamp
        endsDeleted = true
        columns = [:]
        continue
      }
      for column in operation.columns {
        let written = Stamp(time: operation.time(of: column.name), device: device)
        if let last = columns[column.name], last.stamp > written { continue }
        columns[column.name] = (written, column.value)
      }
    }
  }
}

extension RecordState {
  /// Returns this partial state overlaid with a newer one, for changes waiting for the local
  /// schema.
  func overlaid(with newer: RecordState) -> RecordState {
    if newer.inserted != nil || newer.deleted != nil { return newer }
    var merged = self
    for column in newer.columns {
      let index = merged.columns.partitioningIndex { $0.name >= column.name }
      if index < merged.columns.count && merged.columns[index].name == column.name {
        merged.columns[index] = column
      } else {
        merged.columns.insert(column, at: index)
      }
    }
    return merged
  }
}

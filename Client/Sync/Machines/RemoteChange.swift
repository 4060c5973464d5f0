import FerryProtocol

/// What applying a remote change does to the local row.
enum RowEffect: Sendable, Equatable {
  case none
  case delete
  /// Columns to set. `isWhole`: the record is given whole, so columns that are not named go back
  /// to their defaults, except for `kept`: what is pending of them stays in a row that is here, and
  /// one that is not is made with it.
  case upsert([ColumnState], isWhole: Bool, kept: [Column])
}

/// Compares a change from the server with this device's own pending operations on the record
/// (seed rows S1.4, S1.8): the user sees at once what the server will decide.
enum RemoteChange {
  /// `pending`: in the order in which they were recorded, and only those whose effect is not in
  /// `state` yet.
  static func effect(
    of state: RecordState, pending: [Operation], device: DeviceID, rules: TableRules = .standard
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
      // What the record held before the own delete does not come back with the own insert.
      if let deleted = own.deleted, column.stamp < deleted { return false }
      guard let mine = own.columns[column.name]?.stamp else { return true }
      return Resolution.resolve(existing: mine, incoming: column.stamp) != .existing
    }
    let isWhole = state.inserted != nil
    if columns.isEmpty && !isWhole { return .none }
    return .upsert(columns, isWhole: isWhole, kept: own.values)
  }
}

/// What this device's pending operations wrote to one record. A row that is given back to a server is
/// recorded after what was written to it, and is older than that.
struct OwnWrites {
  var inserted: Stamp?
  var deleted: Stamp?
  var endsDeleted = false
  /// The last value of each column, and when it was written.
  private(set) var columns: [Name: (stamp: Stamp, value: Value)] = [:]

  /// By name.
  var values: [Column] {
    columns.sorted { $0.key < $1.key }.map { Column($0.key, $0.value.value) }
  }

  init(_ operations: [Operation], device: DeviceID) {
    for operation in operations {
      let stamp = Stamp(time: operation.time, device: device)
      switch operation.kind {
      case .insert:
        inserted = inserted.map { max($0, stamp) } ?? stamp
        endsDeleted = false
      // A batch counts as what it did to this record.
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
  /// This partial state with a newer one laid over it, for changes that are kept until the local
  /// schema can take them.
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

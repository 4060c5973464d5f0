import FerryProtocol

/// Decides about a row that may have unrecorded changes since a place in the history (SPEC.md §25).
///
/// The rules never infer a delete of a row or of a value. A value found only on this device is
/// recorded as an edit. A value written by others after that place wins, and the value here is kept
/// as a conflict.
struct Reconciliation: Sendable {
  /// The decision about one row.
  struct Decision: Sendable, Equatable {
    /// The row is recorded as an insert.
    var isInserted = false
    /// Columns to record as an edit, with the server's value.
    var edited: [Column] = []
    /// The server's version of the record replaces the row.
    var takesServer = false
    /// Local values replaced by the server's version.
    var lost: [Column] = []
    /// True if the row itself is deleted.
    var losesRow = false

    var isNothing: Bool { self == Decision() }

    /// An upload-only table receives nothing from the server.
    mutating func dropServer() {
      (takesServer, lost, losesRow) = (false, [], false)
    }
  }

  let comparison: RowComparison
  /// The last place in the history at which the row was recorded and equal to the server's.
  let since: SequenceNumber
  /// The columns to compare; `nil` for all, and for the row's existence.
  let columns: Set<Name>?
  let own: OwnNames

  /// The pending operations of a record: the values they write are recorded.
  enum Pending: Sendable, Equatable {
    /// Updates of these columns, or nothing.
    case updates(Set<Name>)
    /// An insert, perhaps with updates; it writes these columns.
    case insert(Set<Name>)
    case delete
  }

  /// Decides about one row.
  ///
  /// - Parameters:
  ///   - here: the row's columns; `nil` if there is no row.
  ///   - there: the record as the server has it.
  func decide(
    here: [Column]?, there: RecordState, pending: Pending = .updates([])
  ) -> Decision {
    switch pending {
    case .delete: return Decision()
    case .insert(let written):
      return here.map { unwritten($0, there.columns, by: written) } ?? Decision()
    case .updates(let written):
      switch comparison.difference(here: here, there: there) {
      case nil: return Decision()
      case .missingHere: return Decision(takesServer: columns == nil)
      case .missingThere(let row): return columns == nil ? missing(row, there) : Decision()
      case .different(let differences):
        return differing(differences, there.columns, besides: written)
      }
    }
  }

  /// Returns the columns written unrecorded over the values of pending operations, with these
  /// values. They are edits on top of those operations.
  ///
  /// - Parameter pending: the newest values in operations from before the unrecorded writes.
  func overwritten(here: [Column], pending: [Column]) -> [Column] {
    let nobody = Stamp(time: .zero, device: .server)
    let states = pending.map {
      ColumnState(name: $0.name, value: $0.value, stamp: nobody, sequence: 0)
    }
    let row = here.filter { column in pending.contains { $0.name == column.name } }
    return comparison.differing(here: row, there: states)
      .filter { !comparison.isEmpty($0.here, in: $0.column) }
      .map { Column($0.column, $0.there) }
  }

  /// Returns the unrecorded values of a row that another device's change replaces. Nothing shows
  /// which of them are old values received by this device.
  ///
  /// - Parameters:
  ///   - row: the columns with perhaps unrecorded values; `nil` if there is no row.
  ///   - pending: the columns written by pending operations.
  static func replaced(
    _ row: [Column]?, by there: RecordState, besides pending: Set<Name>
  ) -> Decision {
    guard let row else { return Decision() }
    var decision = Decision()
    decision.losesRow = there.deleted != nil && !there.isAlive
    decision.lost = row.filter { column in
      guard column.value != .null, !pending.contains(column.name) else { return false }
      if decision.losesRow { return true }
      return there.columns.contains { $0.name == column.name && $0.value != column.value }
    }
    return decision
  }

  /// Decides about a row if the pending insert lacks columns. They have got values since: after a
  /// rename of a column the insert names the former one.
  private func unwritten(
    _ here: [Column], _ there: [ColumnState], by written: Set<Name>
  ) -> Decision {
    var decision = Decision()
    for column in here
    where (columns?.contains(column.name) ?? true) && !written.contains(column.name)
      && !comparison.isEmpty(column.value, in: column.name)
    {
      let value = there.first { $0.name == column.name }?.value
      decision.edited.append(Column(column.name, value ?? .null))
    }
    return decision
  }

  /// Decides about a row that exists only here. A record that never existed is deleted at time 0
  /// (SPEC.md §15).
  private func missing(_ here: [Column], _ there: RecordState) -> Decision {
    if let deleted = there.deleted, deleted.stamp.time > .zero, deleted.sequence > since,
      !own.wrote(deleted.stamp)
    {
      return Decision(takesServer: true, lost: here.filter { $0.value != .null }, losesRow: true)
    }
    return Decision(isInserted: true)
  }

  private func differing(
    _ differences: [ColumnDifference], _ there: [ColumnState], besides pending: Set<Name>
  ) -> Decision {
    var decision = Decision()
    for difference in differences
    where (columns?.contains(difference.column) ?? true) && !pending.contains(difference.column) {
      let name = difference.column
      let state = there.first { $0.name == name }
      if comparison.isEmpty(difference.here, in: name) {
        decision.takesServer = true
        // A new column has the default value if nobody has written it.
        if columns == nil && difference.here != .null {
          decision.lost.append(Column(name, difference.here))
        }
      } else if let state, isNewer(state) {
        decision.takesServer = true
        decision.lost.append(Column(name, difference.here))
      } else {
        decision.edited.append(Column(name, difference.there))
      }
    }
    return decision
  }

  /// Returns true if others wrote the value after the place.
  private func isNewer(_ state: ColumnState) -> Bool {
    (own.wrote(state.stamp) ? state.shared : state.origin) > since
  }
}

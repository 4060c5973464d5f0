import FerryProtocol

/// Decides how one of this device's own operations is undone. Values unchanged since become the
/// former values again.
///
/// A pure machine: the replica's file loads the row once, and executes the decision.
enum UndoDecision: Equatable {
  /// Insert the deleted row again.
  case restore([Column])
  /// Delete the inserted row.
  case delete
  /// Set columns to their former values.
  case set([Column])
  /// Nothing: later changes replaced all of the operation's values.
  case replaced
  /// Nothing: the record does not exist any more.
  case gone
  /// Nothing: the replica has no former values of a batch.
  case batch

  /// - Parameter row: the present values of the operation's columns, without columns missing from
  ///   the table; `nil` if there is no row.
  init(_ own: OwnOperation, on row: [Column]?) {
    let operation = own.operation
    switch operation.kind {
    case .batch: self = .batch
    case .delete: self = row == nil ? .restore(operation.columns) : .replaced
    case .insert:
      guard let row else {
        self = .gone
        return
      }
      let isUnchanged = row.allSatisfy { operation.columns.contains($0) }
      self = isUnchanged ? .delete : .replaced
    case .update:
      guard let row else {
        self = .gone
        return
      }
      let former = operation.columns.compactMap { Self.former($0, of: own, on: row) }
      self = former.isEmpty ? .replaced : .set(former)
    }
  }

  /// The place of an operation in the queue, and the rows beside the record's own.
  struct Place: Equatable {
    /// True if the server may accept the operation: by the token, or because the table only sends.
    var isAccepted = false
    /// True if the packet was sent: the server may have it.
    var isSent = false
    /// True if a later operation of the queue concerns the record.
    var hasLater = false
    /// True if the delete of the row may delete, change or leave other rows.
    var concernsOthers = false
    /// True if rows of other tables follow the row's values.
    var hasFollowers = false
    /// True if the row would refer to a missing one.
    var lacksParents = false
  }

  /// The columns that the undo writes; `nil` if it writes none.
  var written: [Column]? {
    switch self {
    case .restore(let columns), .set(let columns): columns
    case .delete, .replaced, .gone, .batch: nil
    }
  }

  /// Returns the number of columns that the undo concerns.
  func columnCount(of operation: SyncOperation) -> Int {
    if case .set(let former) = self { former.count } else { operation.columns.count }
  }

  /// Returns true if the undo removes the operation from the queue: the server would accept no operation that
  /// reverts it, nothing here depends on it, and at most the record's own row changes. An operation without a
  /// value left to undo is removed as well: it could never be sent. The server's values follow.
  func removesOperation(at place: Place) -> Bool {
    guard !place.isAccepted, !place.isSent, !place.hasLater else { return false }
    switch self {
    case .delete: return !place.concernsOthers
    case .set: return !place.hasFollowers && !place.lacksParents
    case .restore: return !place.lacksParents
    case .replaced, .gone, .batch: return true
    }
  }

  /// Returns a column with the former value if it still has the operation's value.
  private static func former(
    _ column: Column, of own: OwnOperation, on row: [Column]
  ) -> Column? {
    guard let current = row.first(where: { $0.name == column.name })?.value else { return nil }
    if own.operation.increments.contains(column.name) {
      guard case .integer(let sum) = current, case .integer(let added) = column.value else {
        return nil
      }
      return Column(column.name, .integer(sum &- added))
    }
    guard current == column.value else { return nil }
    return own.former.first { $0.name == column.name }
  }
}

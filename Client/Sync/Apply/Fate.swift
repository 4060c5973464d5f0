import FerryProtocol
import FerrySQLite

/// The fate of a pulled change on this device (SPEC.md §5, §23, §28): a pure machine, without a
/// database and without a clock.
///
/// A change passes four decisions. ``ApplyPass`` finds the facts for each, and performs the result.
///
/// 1. ``state(_:over:)`` adds the change to the deferred one of the record.
/// 2. ``steps(for:)`` decides whether the change is written, deferred or held.
/// 3. ``write(_:_:)`` decides how a row changes.
/// 4. ``rejection(_:_:)`` decides about a change that the local schema rejects.
///
/// ```swift
/// Fate.steps(for: .init(table: .uploadOnly))  // []: nothing is pulled for such a table
/// Fate.steps(for: .init(isOrphan: true))      // [.hold]
/// ```
enum Fate {
  /// The table of a change, as this device has it.
  enum Table: Equatable {
    case known
    /// The file does not have it, or not by this name.
    case unknown
    /// Nothing is pulled for it.
    case uploadOnly
    /// The reserved table of the space's schema.
    case schema
  }

  /// Facts about a change before the device tries to write it.
  struct Arrival {
    var table = Table.known
    /// True if the change was deferred before.
    var isRetry = false
    /// True after the rest of the list: held records are deleted.
    var isEndOfList = false
    /// True if this device asks the user anything.
    var hasQuestions = false
    /// True if writes to the table are perhaps unrecorded.
    var isUnrecorded = false
    /// True if the record goes with a deleted one.
    var isOrphan = false
    /// True if rows later in the list refer to the record, and the change deletes it.
    var isReferredTo = false
    /// True if the record's row is out of the table, while values move between rows.
    var isAside = false
    /// The deferral without an attempt; `nil` for most changes.
    var leftOut: LeftOut?
  }

  /// A deferral without an attempt.
  struct LeftOut: Equatable {
    let reason: String
    let deferral: Deferral
    /// The record's parent to fetch whole with the next pull: this device does not wait for a change
    /// of it, so the server's state of the parent is here already.
    var parent: RecordKey?
  }

  /// One step of a change, in order.
  enum Step: Equatable {
    /// End the questions that the change answers.
    case resolveQuestions
    case storeSchema
    /// Store a change of an unknown table.
    case deferUnknown
    /// Store the values that the change replaces, as conflicts.
    case storeOverwritten
    /// Move the record's row back to the table.
    case restoreRow
    /// Delete the record after the rest of the list.
    case hold
    /// Defer the change without an attempt.
    case leaveOut(LeftOut)
    /// Write the change to the row.
    case write
  }

  /// Returns a change's state with the record's deferred state under it; `nil` if the record is to be
  /// fetched whole, because a part alone is no record.
  ///
  /// - Parameter deferred: the deferred change; `nil` without one.
  static func state(_ state: RecordState, over deferred: KeptChange?) -> RecordState? {
    guard let deferred else { return state }
    if let earlier = deferred.state { return earlier.overlaid(with: state) }
    return state.inserted == nil && state.deleted == nil ? nil : state
  }

  /// Returns the steps for a change, in order.
  static func steps(for facts: Arrival) -> [Step] {
    var steps: [Step] = []
    if facts.hasQuestions && !facts.isRetry { steps.append(.resolveQuestions) }
    switch facts.table {
    case .uploadOnly: return steps
    case .schema: return steps + [.storeSchema]
    case .unknown: return steps + [.deferUnknown]
    case .known: break
    }
    if facts.isUnrecorded && !facts.isRetry { steps.append(.storeOverwritten) }
    let isHeld = facts.isOrphan || facts.isReferredTo && !facts.isRetry
    if isHeld && !facts.isEndOfList {
      return steps + (facts.isAside ? [.restoreRow, .hold] : [.hold])
    }
    guard var leftOut = facts.leftOut else { return steps.isEmpty ? written : steps + [.write] }
    if facts.isRetry { leftOut.parent = nil }
    return steps + [.leaveOut(leftOut)]
  }

  /// The steps of most changes; shared, as an array for each would cost more than the decision.
  private static let written: [Step] = [.write]
}

/// Rows.
extension Fate {
  /// Facts about a change and the row of the record.
  struct Row {
    var isRetry = false
    var isEndOfList = false
    var isAside = false
    /// True if a delete may delete, change or leave other rows.
    var concernsOthers = false
    /// The columns of the table.
    var known: Set<Name> = []
    /// True if the table has all columns of the change.
    var knowsAll = true
  }

  /// A write to a row.
  enum Write: Equatable {
    /// The row is as the change wants it.
    case nothing
    /// The list may move a row elsewhere; before the move, this delete would remove it.
    case hold
    case delete
    /// Insert a row again that is out of the table, with these columns.
    case restore([ColumnState])
    /// Change a row if it exists: deferred parts do not create a deleted record.
    case change([ColumnState])
    case upsert([ColumnState], isWhole: Bool, kept: [Column])
  }

  /// Returns the write for a change's effect on its row.
  static func write(_ effect: RowEffect, _ facts: Row) -> Write {
    switch effect {
    case .none: return .nothing
    case .delete: return facts.concernsOthers && !facts.isEndOfList ? .hold : .delete
    case .upsert(let all, let isWhole, let kept):
      // A comparison of all names would cost more than the rest.
      let columns = facts.knowsAll ? all : all.filter { facts.known.contains($0.name) }
      if !isWhole && facts.isAside { return .restore(columns) }
      if !isWhole && columns.isEmpty { return .nothing }
      if !isWhole && facts.isRetry { return .change(columns) }
      let own = kept.filter { facts.known.contains($0.name) }
      return .upsert(columns, isWhole: isWhole, kept: own)
    }
  }
}

/// Rejected changes, and the rest of written ones.
extension Fate {
  /// Facts about a change rejected by the local schema.
  struct Failure {
    var isRetry = false
    /// True if the table has rows of several spaces.
    var isShared = false
    /// False if the error has ended the transaction.
    var isInTransaction = true
  }

  /// The decision about a rejected change.
  enum Rejection: Equatable {
    /// Apply the list again, without the record.
    case endsTransaction(isAlone: Bool)
    /// Store the change for a later attempt.
    ///
    /// - isWrite: true if other deferred changes are tried, too: values moving between rows may
    ///   need them.
    /// - isBlocked: true if values of another row may block the change.
    case deferred(Deferral, isWrite: Bool, isBlocked: Bool)
  }

  /// Returns the decision about a change after an error of the row.
  static func rejection(_ error: SQLiteError, _ facts: Failure) -> Rejection {
    guard facts.isInTransaction else {
      return .endsTransaction(isAlone: error.concernsRowAlone)
    }
    let deferral = Deferral(error, isShared: facts.isShared)
    // The rest of the list may change the reason, unless the row alone is at fault.
    let isFinal = facts.isRetry || deferral == .definition
    return .deferred(
      isFinal ? deferral : .open, isWrite: !isFinal,
      isBlocked: error.isUnique || error == ApplyPlan.ignored)
  }

  /// Returns the part of a written change that waits for columns; `nil` without such columns.
  ///
  /// - Parameter unknown: the columns missing here.
  static func rest(of change: Change, _ unknown: [ColumnState]) -> Change? {
    if unknown.isEmpty { return nil }
    var rest = change
    (rest.state.columns, rest.state.inserted) = (unknown, nil)
    return rest
  }
}

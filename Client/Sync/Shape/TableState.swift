import FerryProtocol

/// A tracked table after a change of the schema (SPEC.md §25); pure.
struct TableState: Equatable {
  /// True if the file has the table under its name of the space.
  var isPresent = true
  /// True if a statement of this connection has changed the table.
  var isAltered = false
  /// True if the key, columns and rules are those of the triggers.
  var isKnown = true
  /// True if the triggers are those that Ferry created for this table.
  var isAsCreated = true
  /// True if all triggers exist, and are newer than the user's.
  var isRecorded = true

  /// The consequence for the triggers, and for the next sync.
  enum Consequence: Equatable {
    /// Nothing has changed.
    case none
    /// The statement fails: the table would be renamed, or lose its key.
    case rejected
    /// The table is gone. If it returns, the rows are compared.
    case absent
    /// The triggers are installed again. New columns may have unrecorded values.
    case newColumns
    /// The triggers are installed again, and all rows are compared: the table was created again, or
    /// another program renamed columns. SQLite has then rewritten the triggers, and they record the
    /// columns under other names.
    case compared
  }

  /// The consequence of the state.
  var consequence: Consequence {
    guard isPresent else { return isAltered ? .rejected : .absent }
    if !isAltered && !isAsCreated { return .compared }
    return isKnown && isRecorded ? .none : .newColumns
  }
}

/// The tracked tables during an unrecorded step of a migration (SPEC.md §26); pure.
struct Suspension: Equatable {
  /// A table before the step.
  struct Place: Equatable {
    /// The folded names of the table in this file so far.
    var locals: Set<Name>
    /// The first page of the table's rows; a recreated table has another one.
    let root: Int64?
  }

  /// The consequence of the step for a table.
  enum Consequence: Equatable {
    /// The step has dropped the table: it is no longer tracked.
    case untracked
    /// The step fails: it has given the table a name unknown to Ferry.
    case rejected
    /// All rows are compared with the next sync.
    case compared
    /// New columns may have unrecorded values.
    case newColumns
  }

  /// By the names in the space.
  var places: [Name: Place]

  /// Returns the consequence of the step for a table.
  ///
  /// - Parameters:
  ///   - local: the table's name in this file after the step.
  ///   - root: the first page of the table's rows after the step; `nil` without a table.
  ///   - written: the folded names of the tables written by the step.
  ///   - dropped: the folded names of the tables dropped by the step.
  func consequence(
    for name: Name, local: Name, root: Int64?, written: Set<Name>, dropped: Set<Name>
  ) -> Consequence {
    guard let before = places[name] else { return .newColumns }
    guard let root else {
      return before.locals.isDisjoint(with: dropped) ? .rejected : .untracked
    }
    let names = before.locals.union([local.folded])
    let isWritten = !names.isDisjoint(with: written.union(dropped))
    return isWritten || root != before.root ? .compared : .newColumns
  }
}

import FerryProtocol
import FerrySQLite

/// The event a deferred change waits for (SPEC.md §23): a pure rule. Without this event it is not
/// tried again, so deferred changes cost a pull nothing.
///
/// ```swift
/// let deferral = Deferral(error, isShared: false)
/// deferral.endsAfter(.write("tasks"), of: "tasks")  // true for a unique value
/// ```
enum Deferral: Equatable {
  /// The table or a column does not exist here yet: nothing has rejected the change.
  case schema
  /// It is tried with the next retry.
  case open
  /// The parent of the record has no row here.
  case parent(RecordKey)
  /// The row alone violates the table's definition: NOT NULL, CHECK, a type, the size.
  case definition
  /// Another row of the table has the record's unique values.
  case table
  /// Rows of any table refer to the record. As the table may be untracked, a limited number is
  /// tried with each pull, too.
  case rows
  /// Ferry does not see the reason: a trigger, or rows of an untracked table. A limited number of
  /// them is tried with each pull.
  case unseen

  /// An event that starts retries of deferred changes.
  enum Event: Equatable {
    /// A record has a row, or it is deleted for good.
    case arrival(RecordKey)
    /// Rows of a table were written here.
    case write(Name)
    /// The file's schema or the rules of the space have changed.
    case definition
  }

  /// The deferral for an error of a row.
  ///
  /// - Parameter isShared: true if the table has rows of several spaces; this space does not see
  ///   all of them.
  init(_ error: SQLiteError, isShared: Bool) {
    if error.concernsRowAlone {
      self = .definition
    } else if isShared {
      self = .unseen
    } else if error.isUnique || error.isPrimaryKey {
      self = .table
    } else {
      self = error.isForeignKey ? .rows : .unseen
    }
  }

  /// Returns true if a change is tried again after an event.
  ///
  /// - Parameter table: the change's table.
  func endsAfter(_ event: Event, of table: Name) -> Bool {
    switch (self, event) {
    case (.open, _), (_, .definition): true
    case (.parent(let parent), .arrival(let key)): parent == key
    case (.table, .write(let written)): written == table
    case (.rows, .write): true
    default: false
    }
  }

  /// The kinds of deferrals, with the numbers in `ferry_kept`: a change above ``schema`` was
  /// rejected by the local schema, and one from ``rows`` on is tried now and then without an event.
  enum Kind: Int64, CustomStringConvertible {
    case schema, open, parent, definition, table, rows, unseen

    var description: String { "\(rawValue)" }
  }

  var kind: Kind {
    switch self {
    case .schema: .schema
    case .open: .open
    case .parent: .parent
    case .definition: .definition
    case .table: .table
    case .rows: .rows
    case .unseen: .unseen
    }
  }
}

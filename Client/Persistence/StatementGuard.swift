import FerryProtocol
import FerrySQLite

/// Checks whether the user's SQL may take an action in a file; pure. Only Ferry ends transactions
/// and writes to `ferry_…` tables, and only another replica records writes to its own tables.
struct StatementGuard {
  /// The file of the table last written by the current statement.
  private var written = "main"
  /// The table being dropped, with its triggers.
  private var dropped: (table: String, database: String)?

  /// Returns the reason why an action is forbidden; `nil` if it is allowed.
  mutating func refusal(of action: SQLiteAction) -> String? {
    switch action.kind {
    case .transaction:
      return "\(action.name) would end or begin a transaction; leave out BEGIN, COMMIT and "
        + "ROLLBACK: all statements of a call are one transaction, and none of them took effect"
    case .write:
      written = action.database
      return Self.fault(in: action.name)
    case .make, .alter, .drop: return Self.fault(in: action.name)
    case .dropTable:
      dropped = (action.name, action.database)
      return Self.fault(in: action.name)
    case .dropTrigger:
      if let dropped, dropped == (action.owner, action.database) { return nil }
      return Self.fault(in: action.name)
    case .call: return fault(ofCall: action)
    }
  }

  /// Returns the reason why a user may not write to a table, or create one, of this name.
  static func fault(in name: String) -> String? {
    guard isReserved(name) else { return nil }
    return "\(name) is reserved for Ferry: a change could lose unsynced operations. Names that "
      + "begin with ferry_ are read-only"
  }

  /// Checks a call of a capture function: only triggers of this file, or of another attached
  /// replica, may call one.
  private func fault(ofCall action: SQLiteAction) -> String? {
    guard Self.isReserved(action.name) else { return nil }
    guard let trigger = action.trigger, Self.isReserved(trigger) else {
      return "the function \(action.name) is reserved for Ferry"
    }
    if Name(written).folded == "main" { return nil }
    return "the replica attached as \(written) tracks the table, but this replica would record the "
      + "write; open that replica by itself: `ferry sql --replica FILE`"
  }

  private static func isReserved(_ name: String) -> Bool {
    Name(name).folded.utf8.starts(with: "ferry_".utf8)
  }
}

extension SQLiteConnection {
  /// Protects Ferry's tables and transactions from the user's SQL. Ferry's own statements are not
  /// checked.
  package func guardUserStatements() {
    var rules = StatementGuard()
    guardStatements { rules.refusal(of: $0) }
  }
}

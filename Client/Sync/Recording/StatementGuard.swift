import SQLite

/// What SQL of the user's may not do in a replica; pure. The replica's transactions and its tables
/// `ferry_…` are Ferry's, and what is written to another replica is that replica's to record.
struct StatementGuard {
  /// The file whose table was written to last, in the statement that is looked at.
  private var written = "main"
  /// The table that is dropped, whose triggers go with it.
  private var dropped: (table: String, database: String)?

  /// Why an action is refused; `nil` where it may be done.
  mutating func refusal(of action: SQLiteAction) -> String? {
    switch action.kind {
    case .transaction:
      return "\(action.name) would end or begin a transaction; leave out BEGIN, COMMIT and "
        + "ROLLBACK: the statements given together are one transaction, and nothing of them was kept"
    case .write:
      written = action.database
      return fault(in: action.name)
    case .make, .alter, .drop: return fault(in: action.name)
    case .dropTable:
      dropped = (action.name, action.database)
      return fault(in: action.name)
    case .dropTrigger:
      if let dropped, dropped == (action.owner, action.database) { return nil }
      return fault(in: action.name)
    case .call: return fault(ofCall: action)
    }
  }

  private func fault(in name: String) -> String? {
    guard Self.isReserved(name) else { return nil }
    return "\(name) is Ferry's own: the replica would lose what it has to sync. What begins with "
      + "ferry_ can be read and not changed"
  }

  /// Capture functions are called by triggers: of this file's tables, or of those of another
  /// replica that is attached.
  private func fault(ofCall action: SQLiteAction) -> String? {
    guard Self.isReserved(action.name) else { return nil }
    guard let trigger = action.trigger, Self.isReserved(trigger) else {
      return "the function \(action.name) is Ferry's own"
    }
    guard written.lowercased() != "main" else { return nil }
    return "the table is tracked by the replica that is attached as \(written), and would be "
      + "recorded here; write to it as a replica of its own: `ferry sql --replica FILE`"
  }

  private static func isReserved(_ name: String) -> Bool {
    name.prefix(6).lowercased() == "ferry_"
  }
}

extension SQLiteConnection {
  /// Keeps SQL of the user's off what is Ferry's. Ferry's own statements are not looked at.
  func guardUserStatements() {
    var rules = StatementGuard()
    guardStatements { rules.refusal(of: $0) }
  }
}

import FerryProtocol
import FerrySQLite

/// A first list that is filled in beside its tables, so that other processes can write meanwhile (SPEC.md
/// §5). Readers see all of it with the exchange, or nothing.
extension ReplicaFile {
  var shadows: ShadowTables { ShadowTables(connection: connection) }

  private var firstLists: FirstListOptions { (spaces.first ?? self).firstListOptions }

  /// Fills copies of the empty tables of a list with its rows; `nil` if the list has to be applied at once.
  func fill(
    last body: [UInt8], _ head: PageHead, _ progress: (Int) -> Void
  ) throws -> FilledList? {
    // A process may have been killed before the exchange.
    if try shadows.isAny() { try dropShadows() }
    guard FirstList.isFillable(try stateBefore(head), changesMin: firstLists.changesMin) else {
      return nil
    }
    return try withoutForeignKeys {
      do {
        guard let filled = try beginFilling() else { return nil }
        try fill(filled, last: body, progress)
        for pair in filled.pairs where try shadows.hasDanglingRows(pair) { throw CannotFill() }
        return filled
      } catch let error where error is CannotFill || (error as? SQLiteError)?.concernsRow == true {
        try dropShadows()
        return nil
      } catch let error as SQLiteError where error.isDiskFull {
        // The copies would have the room that the user makes.
        try? dropShadows()
        throw error
      }
    }
  }

  /// Removes the copies of tables.
  func dropShadows() throws {
    try withoutForeignKeys {
      try connection.transaction {
        try refreshTriggersOfNewSchema()
        try shadows.drop()
        try noteChecked()
      }
    }
  }

  /// Gives the filled rows to their tables. Part of the transaction that applies the rest of the list.
  ///
  /// - Throws: ``FirstListOutdated`` if the tables have changed since.
  func exchange(_ filled: FilledList) throws {
    let facts = try tableFacts(after: filled.newestOrder)
    guard try kept.isEmpty(), spaces.pullInterceptors.isEmpty,
      filled.pairs.allSatisfy({ facts[$0.local.folded]?.isFillable ?? false })
    else { throw FirstListOutdated() }
    try shadows.exchange(filled.pairs)
    for name in filled.tables { try storeTriggerMark(of: schema(of: name)) }
    applyPlans = [:]
    try noteChecked()
  }

  // MARK: Filling

  private func stateBefore(_ head: PageHead) throws -> FirstList.Replica {
    let state = try syncState()
    return FirstList.Replica(
      changes: try stagedPages.changeCount() + head.count,
      hasCursor: state.applied != 0 || state.replacement != nil,
      hasInterceptors: !spaces.pullInterceptors.isEmpty,
      hasWaiting: try !kept.isEmpty() || conflicts.hasOpenQuestions() || tracked.hasReturning()
        || !tracked.fills().isEmpty,
      isInMemory: path == SQLiteConnection.memory)
  }

  private func beginFilling() throws -> FilledList? {
    try connection.transaction {
      try refreshTriggersOfNewSchema()
      let chosen = FirstList.tables(try tableFacts())
      guard !chosen.isEmpty else { return nil }
      try shadows.checkExchange()
      guard let pairs = try shadows.create(chosen.sorted()) else { throw CannotFill() }
      try noteChecked()
      var plans: [Name: ApplyPlan] = [:]
      for name in try tracked.names() {
        guard let table = try? schema(of: name), table.name == name,
          let pair = pairs.first(where: { $0.local.folded == table.local.folded }),
          let plan = try plan(for: name)
        else { continue }
        plans[name] = plan.writing(to: pair.copy)
      }
      return FilledList(
        pairs, plans, newestOrder: try queue.newestOrder(), on: connection)
    }
  }

  private func fill(
    _ filled: FilledList, last body: [UInt8], _ progress: (Int) -> Void
  ) throws {
    let attempts = self.attempts
    var slice: [Change] = []
    func write() throws {
      try firstLists.run {
        try connection.transaction { for change in slice { try filled.add(change) } }
      }
      self.attempts += slice.count
      slice.removeAll(keepingCapacity: true)
      progress(self.attempts - attempts)
    }
    try stagedPages.forEachApart(last: body) { page in
      guard try page.open().notices.isEmpty else { throw CannotFill() }
      while let batch = try page.next() {
        for change in batch {
          guard case .success(let change) = change else { throw CannotFill() }
          slice.append(change)
          if slice.count >= firstLists.sliceChanges { try write() }
        }
      }
    }
    if !slice.isEmpty { try write() }
  }

  /// Returns the states of the tracked tables, by their folded names here.
  ///
  /// - Parameter order: own operations after this place count.
  private func tableFacts(after order: Int64 = 0) throws -> [Name: FirstList.Table] {
    let uploads = try tracked.uploads()
    let unrecorded = Set(try unrecordedTables().map(\.table))
    var facts: [Name: FirstList.Table] = [:]
    for name in try tracked.names() {
      guard let table = try? schema(of: name), table.name == name else { continue }
      let definitions = try connection.rows(
        """
        SELECT sql FROM sqlite_schema
        WHERE tbl_name = ? COLLATE NOCASE AND type = 'table'
        """, table.local
      ) { TableSQL($0.text(0)) }
      facts[table.local.folded] = FirstList.Table(
        isTwoWay: !uploads.contains(name),
        isEmpty: try !connection.exists("SELECT 1 FROM \(quoted(table.local)) LIMIT 1"),
        hasOwnWrites: try unrecorded.contains(name) || hasOperations(on: name, after: order),
        hasNumbers: table.identity == .mapped || table.keys.contains { $0.numbers != nil }
          || table.columns.contains { $0.numbers != nil },
        isShared: table.share != nil, hasUserTriggers: try shadows.hasUserTriggers(table.local),
        decidesItself: definitions.contains { $0.has("ON", "CONFLICT") || $0.has("AUTOINCREMENT") },
        parents: Set(table.references.map(\.table.folded)))
    }
    return facts
  }

  private func hasOperations(on table: Name, after order: Int64) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_operations WHERE seq > ? AND tbl = ? LIMIT 1", order, table)
  }

  /// Runs `body` without checks of foreign keys: a row may come before its parent, in another transaction.
  private func withoutForeignKeys<T>(_ body: () throws -> T) throws -> T {
    precondition(!connection.isInTransaction, "SQLite keeps foreign keys within a transaction")
    let wereOn = try connection.first("PRAGMA foreign_keys") { $0.int64(0) == 1 } ?? false
    try connection.execute("PRAGMA foreign_keys=OFF")
    defer { if wereOn { try? connection.execute("PRAGMA foreign_keys=ON") } }
    return try body()
  }
}

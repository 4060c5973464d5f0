import FerryProtocol
import FerrySQLite

/// A first list that is filled in beside its tables, so that others can write meanwhile (SPEC.md
/// §38). Readers see all of it with the exchange, or nothing.
package struct FirstListFiller {
  private let file: ReplicaFile

  init(_ file: ReplicaFile) { self.file = file }

  private var connection: SQLiteConnection { file.connection }
  var shadows: ShadowTables { ShadowTables(connection: connection) }
  private var options: FirstListOptions { (file.spaces.first ?? file).firstListOptions }

  /// Begins to fill copies of the empty tables of a list. Returns whether slices follow; otherwise the list
  /// has to be applied at once.
  package func begin(last body: [UInt8], _ head: PageHead) throws -> Bool {
    file.filling = nil
    let changes = try file.stagedPages.changeCount() + head.count
    // A process may have been killed.
    if changes > 0 { try end() }
    guard changes >= options.changesMin,
      FirstList.isFillable(try stateBefore(changes), changesMin: options.changesMin)
    else { return false }
    return try givingUp {
      guard let filled = try makeCopies() else { return false }
      file.filling = ListFilling(filled, StagedPageCursor(file.stagedPages, last: body))
      return true
    }
  }

  /// Fills the next slice, or checks some of its rows. Returns false at the end: ``PulledList``
  /// makes the list visible.
  ///
  /// - Parameter progress: gets the number of changes tried so far.
  package func fillSlice(_ progress: (Int) -> Void = { _ in }) throws -> Bool {
    guard let filling = file.filling, !filling.isComplete else { return false }
    return try givingUp {
      let slice = try filling.next(options.sliceChanges)
      if slice.isEmpty { return try check(filling) }
      // A row may come before its parent, in another transaction.
      try withoutForeignKeys {
        try connection.transaction { for change in slice { try filling.filled.add(change) } }
      }
      file.attempts.count += slice.count
      progress(filling.tried)
      return true
    }
  }

  /// Drops the copies of a list, also those of a process that was killed.
  package func end() throws {
    file.filling = nil
    if try shadows.isAny() { try dropShadows() }
  }

  /// Returns a list that was filled in completely.
  func dequeueFilled() -> FilledList? {
    defer { file.filling = nil }
    guard let filling = file.filling, filling.isComplete else { return nil }
    return filling.filled
  }

  private func check(_ filling: ListFilling) throws -> Bool {
    var check = try filling.check ?? copyCheck(of: filling.filled)
    filling.isComplete = try !check.next(options.checkedRows)
    filling.check = check
    return !filling.isComplete
  }

  private func copyCheck(of filled: FilledList) throws -> CopyCheck {
    try CopyCheck(
      filled.pairs.map { pair in
        (pair.copy, try file.tables.foreignKeys.keys(of: TableSchema(untracked: pair.copy)))
      }, on: connection)
  }

  /// Runs a step of the fill. If it shows that the list cannot be filled in, the copies are dropped.
  private func givingUp(_ step: () throws -> Bool) throws -> Bool {
    do {
      return try step()
    } catch let error where error is CannotFill || (error as? SQLiteError)?.concernsRow == true {
      try end()
      return false
    } catch {
      dropUnlessBusy(error)
      throw error
    }
  }

  /// Drops the copies after an error: they would have the room that the user makes. If the file is locked, the
  /// next list does so.
  private func dropUnlessBusy(_ error: any Error) {
    if (error as? SQLiteError)?.isBusy == true { file.filling = nil } else { try? end() }
  }

  /// Drops the copies after a failed exchange.
  ///
  /// - Throws: the error, unless the list can be applied at once: another writer has changed the tables, or a
  ///   row violates the schema.
  func abandonExchange(after error: any Error) throws {
    shadows.forgetSchema()
    let isAtOnce =
      error is FirstListOutdated || error is RecordEndedTransaction
      || (error as? SQLiteError)?.concernsRow == true
    guard isAtOnce else {
      dropUnlessBusy(error)
      throw error
    }
    try end()
  }

  /// Removes the copies of tables.
  func dropShadows() throws {
    try withoutForeignKeys {
      try connection.transaction {
        try file.schemaChanges.refreshIfNew()
        try shadows.drop()
        try file.schemaChanges.markChecked()
      }
    }
  }

  /// Gives the filled rows to their tables, beside those that this device has written meanwhile. Part of the
  /// transaction that applies the rest of the list.
  ///
  /// - Throws: ``FirstListOutdated`` if the tables have changed in another way.
  func exchange(_ filled: FilledList) throws {
    let facts = try tableFacts()
    guard try file.kept.isEmpty(), file.spaces.pullInterceptors.isEmpty,
      filled.pairs.allSatisfy({ facts[$0.local.folded]?.isExchangeable ?? false })
    else { throw FirstListOutdated() }
    let hasOwnRows = try addOwnRows(to: filled)
    // With rows, the drop of a copy would check foreign keys. It comes after the transaction then.
    try shadows.exchange(filled.pairs, dropsCopies: !hasOwnRows)
    for name in filled.tables { try file.triggers.storeMark(of: file.tables.schema(of: name)) }
    file.tables.forgetPlans()
    try file.schemaChanges.markChecked()
  }

  /// Adds the rows to the copies that this device has written into their tables since. Returns whether there
  /// are any.
  ///
  /// - Throws: ``FirstListOutdated`` if there are too many, or the list has one of these records, too.
  private func addOwnRows(to filled: FilledList) throws -> Bool {
    var left = FirstList.leftMax
    var hasRows = false
    for (name, plan) in filled.plans.sorted(by: { $0.key < $1.key }) {
      let table = try file.tables.schema(of: name)
      let (own, copy) = (quoted(table.local), quoted(plan.table.local))
      let operations = try connection.rows(
        "SELECT DISTINCT record, kind FROM ferry_operations WHERE seq > ? AND tbl = ? LIMIT ?",
        filled.newestOrder, name, Int64(left + 1)
      ) { (record: $0.name(0), kind: $0.text(1)) }
      left -= operations.count
      let records = Set(operations.map(\.record))
      guard left >= 0, !operations.contains(where: { $0.kind == OperationKind.batch.rawValue }),
        try !records.contains(where: plan.exists)
      else { throw FirstListOutdated() }
      let found = "SELECT 1 FROM \(own) WHERE \(table.has(record: "?1"))"
      let recorded = try records.count { try connection.exists(found, $0) }
      let count = try connection.count(
        "SELECT count(*) FROM (SELECT 1 FROM \(own) LIMIT \(recorded + 1))")
      guard count == recorded else { throw FirstListOutdated() }
      if count == 0 { continue }
      let columns = try connection.rows(
        "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", table.local
      ) { quoted($0.name(0)) }.joined(separator: ", ")
      try connection.execute(
        single: "INSERT INTO \(copy)(\(columns)) SELECT \(columns) FROM \(own)")
      hasRows = true
    }
    return hasRows
  }

  // MARK: Filling

  private func stateBefore(_ changes: Int) throws -> FirstList.Replica {
    let state = try file.syncState()
    return FirstList.Replica(
      changes: changes,
      hasCursor: state.applied != 0 || state.replacement != nil,
      hasInterceptors: !file.spaces.pullInterceptors.isEmpty,
      hasWaiting: try !file.kept.isEmpty() || file.conflicts.hasOpenQuestions()
        || file.tables.tracked.hasReturning() || !file.tables.tracked.fills().isEmpty,
      isInMemory: file.path == SQLiteConnection.memory)
  }

  private func makeCopies() throws -> FilledList? {
    try connection.transaction {
      try file.schemaChanges.refreshIfNew()
      let chosen = FirstList.tables(try tableFacts())
      guard !chosen.isEmpty else { return nil }
      try shadows.checkExchange()
      guard let pairs = try shadows.create(chosen.sorted()) else { throw CannotFill() }
      // SQLite rejects a foreign key here that names no key of its parent.
      for pair in pairs {
        _ = try connection.prepare("PRAGMA main.foreign_key_check(\(quoted(pair.copy)))")
      }
      try file.schemaChanges.markChecked()
      var plans: [Name: ApplyPlan] = [:]
      for name in try file.tables.tracked.names() {
        guard let table = try? file.tables.schema(of: name), table.name == name,
          let pair = pairs.first(where: { $0.local.folded == table.local.folded }),
          let plan = try file.tables.plan(for: name)
        else { continue }
        plans[name] = plan.writing(to: pair.copy)
      }
      return FilledList(
        pairs, plans, newestOrder: try file.queue.newestOrder(), on: connection)
    }
  }

  /// Returns the states of the tracked tables, by their folded names here.
  private func tableFacts() throws -> [Name: FirstList.Table] {
    let uploads = try file.tables.tracked.uploads()
    let unrecorded = Set(try file.unrecordedWrites.tables().map(\.table))
    var facts: [Name: FirstList.Table] = [:]
    for name in try file.tables.tracked.names() {
      guard let table = try? file.tables.schema(of: name), table.name == name else { continue }
      let definitions = try connection.rows(
        """
        SELECT sql FROM sqlite_schema
        WHERE tbl_name = ? COLLATE NOCASE AND type = 'table'
        """, table.local
      ) { TableSQL($0.text(0)) }
      facts[table.local.folded] = FirstList.Table(
        isTwoWay: !uploads.contains(name),
        isEmpty: try !connection.exists("SELECT 1 FROM \(quoted(table.local)) LIMIT 1"),
        hasOwnWrites: try hasOperations(on: name), isUnrecorded: unrecorded.contains(name),
        hasNumbers: table.identity == .mapped || table.keys.contains { $0.numbers != nil }
          || table.columns.contains { $0.numbers != nil },
        isShared: table.share != nil, hasUserTriggers: try shadows.hasUserTriggers(table.local),
        decidesItself: definitions.contains { $0.has("ON", "CONFLICT") || $0.has("AUTOINCREMENT") },
        parents: Set(table.references.map(\.table.folded)))
    }
    return facts
  }

  private func hasOperations(on table: Name) throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_operations WHERE tbl = ? LIMIT 1", table)
  }

  /// Runs `body` without checks of foreign keys.
  private func withoutForeignKeys<T>(_ body: () throws -> T) throws -> T {
    precondition(!connection.isInTransaction, "SQLite keeps foreign keys within a transaction")
    let wereOn = try connection.first("PRAGMA foreign_keys") { $0.int64(0) == 1 } ?? false
    try connection.execute("PRAGMA foreign_keys=OFF")
    defer { if wereOn { try? connection.execute("PRAGMA foreign_keys=ON") } }
    return try body()
  }
}

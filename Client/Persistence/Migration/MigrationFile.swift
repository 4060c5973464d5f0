import FerrySQLite

/// A file for the steps of a migrator, on the writing thread.
package struct MigrationFile {
  private let connection: SQLiteConnection
  private let owner: (any DatabaseOwner)?

  package init(connection: SQLiteConnection, owner: (any DatabaseOwner)? = nil) {
    (self.connection, self.owner) = (connection, owner)
  }

  /// Returns the names of the steps run in the file, in their order.
  package func done() throws -> [String] {
    guard try connection.exists("SELECT 1 FROM sqlite_schema WHERE name = 'ferry_steps'") else {
      return []
    }
    return try connection.rows("SELECT name FROM ferry_steps ORDER BY place") { $0.text(0) }
  }

  /// Runs a step in a separate transaction, unless another process has run it. Returns true if it
  /// ran.
  ///
  /// - Parameters:
  ///   - earlier: the steps before it.
  ///   - begin: runs in the transaction before the step.
  ///   - end: runs after the step; receives the tables possibly written by it.
  package func run(
    _ step: Migrator.Step, after earlier: [String], begin: () throws -> Void = {},
    end: (Set<String>) throws -> Void = { _ in }
  ) throws -> Bool {
    if step.isRecorded { return try runOnce(step, earlier, begin, end) }
    try connection.execute("PRAGMA foreign_keys=OFF")
    let result = Result { try runOnce(step, earlier, begin, end) }
    try connection.execute("PRAGMA foreign_keys=ON")
    return try result.get()
  }

  private func runOnce(
    _ step: Migrator.Step, _ earlier: [String], _ begin: () throws -> Void,
    _ end: (Set<String>) throws -> Void
  ) throws -> Bool {
    try connection.transaction {
      let names = earlier + [step.name]
      let plan = try MigrationPlan(steps: names, done: Array(try done().prefix(names.count)))
      guard plan.pending.contains(earlier.count) else { return false }
      let broken = step.isRecorded ? 0 : try brokenReferences()?.count ?? 0
      try begin()
      let database = Database(connection: connection, owner: owner)
      defer { database.isOver = true }
      try step.body(database)
      try end(database.tablesWritten)
      if !step.isRecorded { try checkReferences(broken) }
      try connection.execute(
        """
        CREATE TABLE IF NOT EXISTS ferry_steps(   -- the steps of the application's migrator
          place INTEGER PRIMARY KEY, name TEXT NOT NULL)
        """)
      try connection.run(
        "INSERT INTO ferry_steps(place, name) VALUES (?, ?)", earlier.count, step.name)
      return true
    }
  }

  /// Fails if more rows refer to nothing than before the step. Another program may have left some.
  private func checkReferences(_ before: Int64) throws {
    guard let broken = try brokenReferences(), broken.count > before else { return }
    throw DatabaseError(
      "\(broken.count - before) rows refer to nothing after it, such as one of \(broken.table) that "
        + "refers to \(broken.parent)", code: SQLiteError.constraintCode)
  }

  private func brokenReferences() throws -> (table: String, parent: String, count: Int64)? {
    let found = try connection.first(
      "SELECT \"table\", \"parent\", count(*) FROM pragma_foreign_key_check()"
    ) { ($0.optionalText(0), $0.optionalText(1), $0.int64(2)) }
    guard let (table, parent, count) = found, let table, let parent else { return nil }
    return (table, parent, count)
  }
}

/// The steps of a migrator one by one, with the decisions of the application.
package struct MigrationDriver {
  private let steps: [Migrator.Step]
  private let fallback: (@Sendable (MigrationFailure) async throws -> MigrationFallback)?

  package init(
    _ migrator: Migrator,
    _ fallback: (@Sendable (MigrationFailure) async throws -> MigrationFallback)?
  ) {
    (steps, self.fallback) = (migrator.steps, fallback)
  }

  /// Runs all steps that the file has not run.
  ///
  /// - Parameters:
  ///   - done: returns the names of the steps run in the file.
  ///   - run: runs a step after the earlier ones; returns true if the file did not have it.
  package func drive(
    done: () async throws -> [String], run: (Migrator.Step, [String]) async throws -> Bool
  ) async throws -> MigrationReport {
    let plan = try MigrationPlan(steps: steps.map(\.name), done: try await done())
    var report = MigrationReport()
    for place in plan.pending {
      let step = steps[place]
      var attempt = 1
      while true {
        do {
          if try await run(step, steps.prefix(place).map(\.name)) { report.ran.append(step.name) }
          break
        } catch let error where error is CancellationError || error is MigrationError {
          throw error
        } catch let error as any LockReporting where error.isBusy {
          // The step has not begun; no fallback would help.
          throw error
        } catch {
          let failure = MigrationFailure(
            step: step.name, version: place == 0 ? nil : steps[place - 1].name, attempt: attempt,
            reason: error)
          guard let fallback else { throw failure }
          guard case .retry = try await fallback(failure) else {
            report.failed = step.name
            return report
          }
          attempt += 1
          guard attempt <= MigrationFallback.attemptsMax else { throw failure }
        }
      }
    }
    return report
  }
}

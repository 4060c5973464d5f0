import FerrySQLite

/// A file that runs the steps of a migrator, on its writing thread.
package struct MigrationFile {
  private let connection: SQLiteConnection
  private let owner: (any DatabaseOwner)?

  package init(connection: SQLiteConnection, owner: (any DatabaseOwner)? = nil) {
    (self.connection, self.owner) = (connection, owner)
  }

  /// Returns the names of the steps that the file has run, in their order.
  package func done() throws -> [String] {
    guard try connection.exists("SELECT 1 FROM sqlite_schema WHERE name = 'ferry_steps'") else {
      return []
    }
    return try connection.rows("SELECT name FROM ferry_steps ORDER BY place") { $0.text(0) }
  }

  /// Runs a step in a transaction of its own, unless another process has run it. Returns whether it
  /// ran.
  ///
  /// - Parameters:
  ///   - begin: runs in the transaction before the step.
  ///   - end: runs after the step; receives the tables to which it may have written.
  package func run(
    _ step: Migrator.Step, at place: Int, begin: () throws -> Void = {},
    end: (Set<String>) throws -> Void = { _ in }
  ) throws -> Bool {
    if step.isRecorded { return try runOnce(step, place, begin, end) }
    try connection.execute("PRAGMA foreign_keys=OFF")
    let result = Result { try runOnce(step, place, begin, end) }
    try connection.execute("PRAGMA foreign_keys=ON")
    return try result.get()
  }

  private func runOnce(
    _ step: Migrator.Step, _ place: Int, _ begin: () throws -> Void,
    _ end: (Set<String>) throws -> Void
  ) throws -> Bool {
    try connection.transaction {
      guard try done().count == place else { return false }
      try begin()
      let database = Database(connection: connection, owner: owner)
      defer { database.isOver = true }
      try step.body(database)
      try end(database.tablesWritten)
      if !step.isRecorded { try checkReferences() }
      try connection.execute(
        """
        CREATE TABLE IF NOT EXISTS ferry_steps(   -- the steps of the application's migrator
          place INTEGER PRIMARY KEY, name TEXT NOT NULL)
        """)
      try connection.run("INSERT INTO ferry_steps(place, name) VALUES (?, ?)", place, step.name)
      return true
    }
  }

  /// Fails if a row refers to nothing.
  private func checkReferences() throws {
    let broken = try connection.first(
      "SELECT \"table\", \"parent\", count(*) FROM pragma_foreign_key_check()"
    ) { ($0.optionalText(0), $0.optionalText(1), $0.int64(2)) }
    guard let (table, parent, count) = broken, let table, let parent else { return }
    throw DatabaseError(
      "\(count) rows refer to nothing after it, such as one of \(table) that refers to \(parent)",
      code: SQLiteError.constraintCode)
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
  ///   - done: returns the names of the steps that the file has run.
  ///   - run: runs a step, at a place; returns whether the file did not have it.
  package func drive(
    done: () async throws -> [String], run: (Migrator.Step, Int) async throws -> Bool
  ) async throws -> MigrationReport {
    let plan = try MigrationPlan(steps: steps.map(\.name), done: try await done())
    var report = MigrationReport()
    for place in plan.pending {
      let step = steps[place]
      var attempt = 1
      while true {
        do {
          if try await run(step, place) { report.ran.append(step.name) }
          break
        } catch {
          let failure = MigrationFailure(
            step: step.name, version: place == 0 ? nil : steps[place - 1].name, attempt: attempt,
            reason: error)
          guard let fallback, !(error is CancellationError) else { throw failure }
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

import FerryPostgres
import FerrySyncClient

/// Creation and removal of mirrors.
extension Mirror {
  // MARK: Adding

  /// Creates a mirror: its folder, tables in PostgreSQL, and an entry in the ledger there. After an
  /// interruption, the same call goes on. It also replaces a mirror's token.
  ///
  /// - Throws: ``MirrorFault`` if the space defines no table, or if a table in PostgreSQL has rows;
  ///   then nothing has changed.
  package static func add(
    _ configuration: MirrorConfiguration, in folder: MirrorFolder, token: String?
  ) async throws -> MirrorPlan {
    let isKnown = folder.exists
    try folder.checkIsFree(for: configuration)
    if !isKnown { try folder.removeFormer() }
    try folder.make()
    do {
      let plan = try await connect(configuration, folder, token)
      // An entry without a folder could not be removed.
      try folder.save(configuration)
      try await enter(configuration, plan, isKnown: isKnown)
      return plan
    } catch {
      if !isKnown { folder.removeUnlessCommitted(error) }
      throw error
    }
  }

  private static func connect(
    _ configuration: MirrorConfiguration, _ folder: MirrorFolder, _ token: String?
  ) async throws -> MirrorPlan {
    let replica = try await Replica.open(folder.replica)
    do {
      try await replica.connect(
        to: configuration.server, space: configuration.space, token: token)
      let plan = try configuration.plan(try await replica.schema())
      await replica.close()
      guard plan.tables.isEmpty else { return plan }
      throw MirrorFault(description: plan.emptyFault(of: configuration.space))
    } catch {
      await replica.close()
      throw error
    }
  }

  private static func enter(
    _ configuration: MirrorConfiguration, _ plan: MirrorPlan, isKnown: Bool
  ) async throws {
    try await PostgresPool.once(configuration.database) { pool in
      let schema = configuration.schema
      let faults = try await pool.run { try MirrorRights(schema, $0).faults(makesTables: true) }
      try MirrorFault.raise(faults)
      _ = try await MirrorLedger.enter(configuration, plan, again: isKnown, pool)
    }
  }

  // MARK: Removing

  /// Removes a mirror: triggers, entry and folder. The tables stay, with their rows. Neither the
  /// server nor the replica is needed.
  ///
  /// - Parameter forgets: whether the rows of adopted tables are removed from the folder, too. They
  ///   separate the company's later changes from those of devices if the tables are adopted again.
  /// - Returns: Parts of tables that are not as they were before the mirror.
  @discardableResult
  package static func remove(_ folder: MirrorFolder, forgets: Bool) async throws -> [String] {
    let configuration = try folder.configuration()
    let lock = try folder.lock()
    let keeps = !forgets && !configuration.adoptions.isEmpty
    let isLeft = keeps ? try await leave(configuration, folder) : false
    // The creation may have been interrupted.
    let changed = try await forget(configuration.name, in: configuration.database)
    if isLeft { try folder.leave(configuration) } else { try folder.remove() }
    withExtendedLifetime(lock) {}
    return changed ?? []
  }

  /// Removes an open mirror without a single row in the space.
  ///
  /// - Parameters:
  ///   - isReturning: whether the file has the rows of a removed mirror.
  ///   - cause: the reason for the removal.
  /// - Throws: ``MirrorLeft`` if parts stay.
  static func remove(
    _ mirror: Mirror, _ folder: MirrorFolder, isReturning: Bool, after cause: any Error
  ) async throws {
    let configuration = mirror.configuration
    do {
      _ = try await forget(configuration.name, in: configuration.database)
    } catch {
      throw MirrorLeft(
        name: configuration.name, cause: cause, parts: ["the mirror and its parts (\(error))"])
    }
    if isReturning { try folder.leave(configuration) } else { try folder.remove() }
    withExtendedLifetime(mirror) {}
  }

  /// Removes a mirror or a group without a folder: triggers, slot and entry.
  ///
  /// - Returns: Parts of tables that are not as they were before the mirror.
  /// - Throws: ``MirrorFault`` if the database has neither of the name.
  @discardableResult
  package static func remove(_ name: String, from database: String) async throws -> [String] {
    if let changed = try await forget(name, in: database) { return changed }
    let changed = try await PostgresPool.once(database) { pool in
      try await pool.runLocking { try MirrorGroupTables(name, $0)?.removeAll($0) }
    }
    guard let changed else {
      throw MirrorFault(description: "the database has no mirror and no group \(name)")
    }
    return changed
  }

  /// Returns parts of tables that are not as they were; `nil` if the database has no such mirror.
  private static func forget(_ name: String, in database: String) async throws -> [String]? {
    try await PostgresPool.once(database) { pool in
      try await pool.runLocking { connection in
        guard let ledger = try MirrorLedger(name, connection) else { return nil }
        return try ledger.remove(connection)
      }
    }
  }
}

extension MirrorFolder {
  /// - Throws: ``MirrorFault`` if the folder has another mirror or a group.
  func checkIsFree(for configuration: MirrorConfiguration) throws {
    let kind = isGroup ? "group" : "mirror"
    let present = exists && !isGroup ? try self.configuration() : nil
    var asked = configuration
    if let present { (asked, asked.published) = (asked.withLimits(of: present), present.published) }
    guard !isGroup && (present == nil || present == asked) else {
      throw MirrorFault(description: "there is a \(kind) \(configuration.name) in \(path)")
    }
  }

  /// Removes the folder after an error in the creation of the mirror. It stays if PostgreSQL may
  /// have committed before a break of the connection: the same command goes on then.
  ///
  /// - Parameter former: the settings of a removed mirror whose rows stay; `nil` without such rows.
  func removeUnlessCommitted(_ error: any Error, leaving former: MirrorConfiguration? = nil) {
    guard (error as? PostgresError).map({ $0.kind == .server }) ?? true else { return }
    // The same command goes on, or a removal.
    if error is MirrorLeft { return }
    if let former { try? leave(former) } else { try? remove() }
  }
}

extension MirrorLedger {
  /// Enters a mirror in the ledger of the database, and creates its tables.
  ///
  /// - Parameter again: whether an entry of the same mirror may be there.
  /// - Throws: ``MirrorFault`` if the database has another mirror of the name, or if a table has
  ///   rows.
  package static func enter(
    _ configuration: MirrorConfiguration, _ plan: MirrorPlan, again: Bool,
    _ pool: any MirrorConnections
  ) async throws -> MirrorLedger {
    try await pool.runLocking { connection in
      try configuration.checkCapture(connection)
      let (ledger, isNew) = try connection.transaction { connection in
        let tables = MirrorTables(connection: connection, configuration: configuration)
        let (number, isNew) = try tables.enter(again: again)
        // The tables of an existing mirror have rows, and the mirror itself follows the schema.
        if isNew { try tables.make(plan, number, mustBeEmpty: true) }
        return (MirrorLedger(number: number), isNew)
      }
      if configuration.capture == .log {
        try ledger.complete(configuration.name, isNew: isNew, connection) {
          _ = try MirrorLog.makeSlot(ledger.number, connection)
        }
      }
      return ledger
    }
  }

  // MARK: Removing

  /// Ends the capture in all tables, whatever the schema of the space is now. Only the owner of a
  /// table may drop a trigger, but the triggers go with their functions, which the mirror owns.
  var releaseAll: String {
    """
    DO '
      DECLARE found record;
      BEGIN
        FOR found IN SELECT oid::regprocedure AS target FROM pg_proc
          WHERE pronamespace = ''ferry_mirror''::regnamespace AND proname ~ ''^capture_\(number)_''
        LOOP
          EXECUTE format(''DROP FUNCTION %s CASCADE'', found.target);
        END LOOP;
      END'
    """
  }
}

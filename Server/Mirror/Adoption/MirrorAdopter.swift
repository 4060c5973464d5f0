import FerryPostgres
import FerryProtocol
import FerrySyncClient

/// Begins the adoption of a company's tables: the space gets their definitions, and the tables get
/// triggers. ``Mirror/adoptRows(_:)`` uploads the rows.
///
/// If it is cut short, the same call goes on.
package struct MirrorAdopter: Sendable {
  private let configuration: MirrorConfiguration
  private let folder: MirrorFolder
  private let token: String?

  /// - Parameter token: an administrator's, unless the space defines all tables already.
  package init(_ configuration: MirrorConfiguration, in folder: MirrorFolder, token: String?) {
    (self.configuration, self.folder, self.token) = (configuration, folder, token)
  }

  /// - Parameter fallsBack: whether triggers capture if a new mirror would read the log, and
  ///   programs' transactions last too long for that.
  /// - Throws: ``MirrorFault`` if a table cannot be adopted, or if the space defines it in another
  ///   way; then nothing has changed.
  package func begin(fallsBack: Bool = false) async throws -> AdoptionPlan {
    let mayFall = fallsBack && configuration.capture == .log && !folder.exists
    return try await PostgresPool.once(configuration.database) { pool in
      do {
        return try await begin(pool, tries: mayFall ? Self.triesOfLog : Self.triesMax)
      } catch let error as PostgresError where mayFall && error.isLongTransaction {
        var other = configuration
        (other.capture, other.captureReason) = (.triggers, error.message)
        return try await Self(other, in: folder, token: token).begin(pool, tries: Self.triesMax)
      }
    }
  }

  private func begin(_ pool: PostgresPool, tries: Int) async throws -> AdoptionPlan {
    let asked = TableAdoption(configuration)
    let plan = try await pool.run { try asked.plan($0) }
    var configuration = asked.configuration(for: plan)
    try folder.make()
    // Another process may begin the same one: a running group, beside `ferryd mirror adopt`.
    let lock = try folder.lock()
    defer { withExtendedLifetime(lock) {} }
    let isResumed = folder.exists
    configuration.renamed = try folder.renamed(of: configuration)
    if isResumed, try isChanged(configuration) {
      // The mirror follows the changes itself, with the new token.
      try await connect()
      return plan
    }
    try folder.checkIsFree(for: configuration)
    let isReturning = folder.hasFormer(of: configuration)
    if !isResumed, !isReturning { try folder.removeFormer() }
    do {
      try await check(try configuration.plan(try plan.added(to: .empty) ?? .empty), pool)
      let mirrored = try configuration.plan(try await publish(plan, configuration.renamed))
      try folder.save(configuration)
      let ledger = try await install(
        mirrored, TableAdoption(configuration), again: isResumed, isReturning: isReturning, pool,
        tries: tries)
      folder.endFormer()
      // Outside of the transaction with the tables' locks: a view may take long. The running mirror
      // repeats failed ones.
      let sql = mirrored.tables.map {
        MirrorSQL(table: $0, schema: configuration.schema, mirror: ledger.number)
      }
      await MirrorViews(configuration.schema, ledger, pool, { _, _ in }).refresh(sql, all: true)
      return plan
    } catch {
      if isReturning || !isResumed {
        folder.removeUnlessCommitted(error, leaving: isReturning ? configuration : nil)
      }
      throw error
    }
  }

  /// Returns `true` if the folder has the same mirror, whose tables have changed since.
  private func isChanged(_ configuration: MirrorConfiguration) throws -> Bool {
    if folder.isGroup { return false }
    let present = try folder.configuration()
    var asked = configuration.withLimits(of: present)
    asked.published = present.published
    return present != asked && present.isSame(as: asked)
  }

  private func connect() async throws {
    let replica = try await Replica.open(folder.replica)
    do {
      try await replica.connect(
        to: configuration.server, space: configuration.space, token: token)
      await replica.close()
    } catch {
      await replica.close()
      throw error
    }
  }

  /// Adds missing definitions to the space. Returns the space's schema.
  private func publish(
    _ plan: AdoptionPlan, _ renamed: RenamedColumns
  ) async throws -> SpaceSchema {
    let replica = try await Replica.open(folder.replica)
    do {
      try await replica.connect(
        to: configuration.server, space: configuration.space, token: token)
      var schema = try await replica.schema()
      if let added = try plan.added(to: schema, renamed) {
        schema = try await replica.applySchema(added)
      }
      await replica.close()
      return schema
    } catch {
      await replica.close()
      throw error
    }
  }

  /// Checks the conditions of rows, and the queries.
  private func check(_ plan: MirrorPlan, _ pool: PostgresPool) async throws {
    let schema = configuration.schema
    try await pool.run { connection in
      for table in plan.tables {
        try MirrorSQL(table: table, schema: schema, mirror: 0).runCheck(connection)
      }
    }
  }

  /// The number of attempts to create the triggers: programs may have the tables' locks for long.
  static let triesMax = 60
  /// The same for the log, which needs locks that readers notice, if triggers may capture instead.
  private static let triesOfLog = 5

  private func install(
    _ plan: MirrorPlan, _ adoption: TableAdoption, again: Bool, isReturning: Bool,
    _ pool: PostgresPool, tries: Int
  ) async throws -> MirrorLedger {
    try await pool.runLocking(tries: tries) {
      try adoption.install(plan, again: again, isReturning: isReturning, $0)
    }
  }
}

extension PostgresError {
  /// True if a transaction of a program lasts too long for a lock, or for a new slot.
  var isLongTransaction: Bool { isWait || kind == .server && sqlState == "57014" }
}

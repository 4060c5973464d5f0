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

  /// - Throws: ``MirrorFault`` if a table cannot be adopted, or if the space defines it in another way;
  ///   then nothing has changed.
  package func begin() async throws -> AdoptionPlan {
    try await PostgresPool.once(configuration.database) { try await begin($0) }
  }

  private func begin(_ pool: PostgresPool) async throws -> AdoptionPlan {
    let plan = try await plan(pool)
    let configuration = adjusted(plan)
    try folder.make()
    // Another process may begin the same one: a group that runs, beside `ferryd mirror adopt`.
    let lock = try folder.lock()
    defer { withExtendedLifetime(lock) {} }
    let isResumed = folder.exists
    try folder.checkIsFree(for: configuration)
    do {
      try await check(try configuration.plan(try plan.added(to: .empty) ?? .empty), pool)
      let mirrored = try configuration.plan(try await publish(plan))
      try folder.save(configuration)
      try await install(mirrored, configuration, again: isResumed, pool)
      return plan
    } catch {
      if !isResumed { folder.removeUnlessCommitted(error) }
      throw error
    }
  }

  private func plan(_ pool: PostgresPool) async throws -> AdoptionPlan {
    let configuration = configuration
    return try await pool.run { connection in
      try connection.transaction(.snapshot) { connection in
        let reader = CompanyReader(connection: connection, schema: configuration.schema)
        let tables = try configuration.tables.map(reader.table)
        var adoptions = configuration.adoptions
        for table in tables {
          guard let space = adoptions[table.name]?.space else { continue }
          adoptions[table.name]?.space = try reader.canonical(space, of: table)
        }
        return try AdoptionPlan(tables, adoptions)
      }
    }
  }

  private func adjusted(_ plan: AdoptionPlan) -> MirrorConfiguration {
    var configuration = configuration
    for table in plan.tables {
      configuration.adoptions[table.name.text] = table.adoption
      for (column, type) in table.types {
        configuration.types["\(table.name).\(column)"] = type.rawValue
      }
    }
    return configuration
  }

  /// Gives the space the definitions that it lacks. Returns its schema.
  private func publish(_ plan: AdoptionPlan) async throws -> SpaceSchema {
    let replica = try await Replica.open(folder.replica)
    do {
      try await replica.connect(
        to: configuration.server, space: configuration.space, token: token)
      var schema = try await replica.schema()
      if let added = try plan.added(to: schema) { schema = try await replica.applySchema(added) }
      await replica.close()
      return schema
    } catch {
      await replica.close()
      throw error
    }
  }

  /// Checks the conditions of rows.
  private func check(_ plan: MirrorPlan, _ pool: PostgresPool) async throws {
    let schema = configuration.schema
    try await pool.run { connection in
      try connection.transaction { connection in
        try connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        for table in plan.tables {
          _ = try connection.query(
            .once(MirrorSQL(table: table, schema: schema, mirror: 0).check))
        }
      }
    }
  }

  /// How often the triggers are tried: programs may have the tables' locks for long.
  static let triesMax = 60

  private func install(
    _ plan: MirrorPlan, _ configuration: MirrorConfiguration, again: Bool, _ pool: PostgresPool
  ) async throws {
    for attempt in 1... {
      do {
        return try await pool.run { connection in
          try connection.transaction { connection in
            let tables = MirrorTables(connection: connection, configuration: configuration)
            let number = try tables.enter(again: again).number
            for table in plan.tables { try enter(table, number, connection) }
            try tables.make(plan, number)
            // No program writes until the end of this transaction: the triggers capture all others.
            for table in plan.tables { try noteLast(of: table, number, connection) }
          }
        }
      } catch let error as PostgresError where error.isWait && attempt < Self.triesMax {
        try await Task.sleep(for: .milliseconds(500))
      }
    }
  }

  private func enter(
    _ table: MirrorTable, _ number: Int64, _ connection: PostgresConnection
  ) throws {
    let sql = MirrorSQL(table: table, schema: configuration.schema, mirror: number)
    _ = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.adopted(mirror, tab, total, space_column, space_value)
        VALUES ($1, $2, \(sql.estimate), $3, $4) ON CONFLICT DO NOTHING
        """),
      [
        .int8(number), .text(table.name.text), .text(table.adoption?.space?.name),
        .text(table.adoption?.space?.value),
      ])
  }

  private func noteLast(
    of table: MirrorTable, _ number: Int64, _ connection: PostgresConnection
  ) throws {
    let sql = MirrorSQL(table: table, schema: configuration.schema, mirror: number)
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.adopted SET last = (\(sql.lastKey)),
          done = NOT EXISTS (SELECT FROM \(sql.target))
        WHERE mirror = $1 AND tab = $2 AND last IS NULL AND NOT done
        """), [.int8(number), .text(table.name.text)])
  }
}

extension PostgresError {
  /// Whether it waited too long for a lock, or in a circle.
  var isWait: Bool { kind == .server && ["55P03", "40P01"].contains(sqlState) }
}

import FerryPostgres
import FerryProtocol

/// The part of an adoption in PostgreSQL: it reads the company's tables, and creates triggers for
/// them. All calls block.
package struct TableAdoption: Sendable {
  let configuration: MirrorConfiguration

  /// - Parameter configuration: names the tables, and their travelling parts.
  package init(_ configuration: MirrorConfiguration) { self.configuration = configuration }

  /// Reads the tables.
  ///
  /// - Throws: ``MirrorFault`` with all reasons of the database against the adoption.
  package func plan(_ connection: PostgresConnection) throws -> AdoptionPlan {
    try survey(connection).checked()
  }

  /// Returns the settings of the mirror for the tables as they are.
  package func configuration(for plan: AdoptionPlan) -> MirrorConfiguration {
    var configuration = configuration
    for table in plan.tables {
      configuration.adoptions[table.name.text] = table.adoption
      for (column, type) in table.types {
        configuration.types["\(table.name).\(column)"] = type.rawValue
      }
    }
    return configuration
  }

  /// Enters the mirror in the ledger of the database, and creates triggers for the tables, in one
  /// transaction. Rows of earlier writes are uploaded later.
  ///
  /// - Parameters:
  ///   - again: whether an entry of the same mirror may be there.
  ///   - isReturning: whether the mirror's file has the rows of a removed mirror: the tables are
  ///     compared with them instead of being uploaded.
  /// - Throws: ``MirrorFault`` if the database has another mirror of the name.
  package func install(
    _ plan: MirrorPlan, again: Bool, isReturning: Bool = false, _ connection: PostgresConnection
  ) throws -> MirrorLedger {
    let isLogged = configuration.capture == .log
    let isMember = configuration.group != nil
    let (ledger, isNew) = try connection.transaction { connection in
      let tables = MirrorTables(connection: connection, configuration: configuration)
      let (number, isNew) = try tables.enter(again: again)
      for table in plan.tables { try enter(table, number, isReturning, connection) }
      try tables.make(plan, number)
      // No program writes until the end of this transaction: the triggers, or the reader of the
      // group's log, capture all others.
      if !isLogged || isMember { try storeLast(of: plan, number, connection) }
      return (MirrorLedger(number: number), isNew)
    }
    guard isLogged else { return ledger }
    // The slot begins behind all transactions that have written before. The log has all others.
    try ledger.complete(configuration.name, isNew: isNew, connection) {
      let log = try MirrorLog.makeSlot(ledger.number, connection)
      if isMember { return }
      try connection.transaction { connection in
        try storeLast(of: plan, ledger.number, connection)
        // The slices bring all former rows.
        if log?.gaps == 1 { try log?.recordComparison(connection) }
      }
    }
    return ledger
  }

  /// Stores the greatest keys of the tables: captured writes bring later rows.
  func storeLast(
    of plan: MirrorPlan, _ number: Int64, _ connection: PostgresConnection
  ) throws {
    for table in plan.tables where table.adoption != nil {
      try storeLast(of: table, number, connection)
    }
  }

  private func enter(
    _ table: MirrorTable, _ number: Int64, _ isReturning: Bool, _ connection: PostgresConnection
  ) throws {
    let sql = MirrorSQL(table: table, schema: configuration.schema, mirror: number)
    _ = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.adopted(
          mirror, tab, total, rows, done, former, space_column, space_value)
        SELECT $1, $2, e.size, CASE WHEN $5 THEN e.size ELSE 0 END, $5, $5, $3, $4
        FROM (SELECT \(sql.estimate) AS size) e ON CONFLICT DO NOTHING
        """),
      [
        .int8(number), .text(table.name.text), .text(table.adoption?.space?.name),
        .text(table.adoption?.space?.value), .bool(isReturning),
      ])
  }

  private func storeLast(
    of table: MirrorTable, _ number: Int64, _ connection: PostgresConnection
  ) throws {
    let sql = MirrorSQL(table: table, schema: configuration.schema, mirror: number)
    _ = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.adopted SET last = (\(RecaptureSQL(sql: sql).lastKey)),
          done = NOT EXISTS (SELECT FROM \(sql.target))
        WHERE mirror = $1 AND tab = $2 AND last IS NULL AND NOT done
        """), [.int8(number), .text(table.name.text)])
  }
}

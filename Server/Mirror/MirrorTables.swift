import FerryPostgres

/// Makes the tables and triggers of a mirror in PostgreSQL; all calls block.
struct MirrorTables {
  let connection: PostgresConnection
  let configuration: MirrorConfiguration

  /// Enters the mirror in the ledger. Returns its number, and whether it was not there.
  ///
  /// - Parameter again: whether an entry of the same mirror may be there: its making was cut short.
  /// - Throws: ``MirrorFault`` if the database has another mirror of the name.
  func enter(again: Bool) throws -> (number: Int64, isNew: Bool) {
    // Two that begin at once would both create the schema.
    try connection.execute("SELECT pg_advisory_xact_lock(7310593)")
    try connection.execute(MirrorLedger.tables)
    let known = try connection.query(
      .once(
        "SELECT number FROM ferry_mirror.mirrors WHERE name = $1 AND space = $2 AND schema = $3"),
      names)
    if again, let number = try known.first?.int8(0) { return (number, false) }
    let made = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.mirrors(name, space, schema) VALUES ($1, $2, $3)
        ON CONFLICT (name) DO NOTHING RETURNING number
        """), names)
    guard let number = try made.first?.int8(0) else {
      throw MirrorFault(
        description: "the database has a mirror \(configuration.name) already; "
          + "choose another name, or remove that one with "
          + "`ferryd mirror remove \(configuration.name)`; --database helps if its folder is lost")
    }
    return (number, true)
  }

  private var names: PostgresParameters {
    [.text(configuration.name), .text(configuration.space), .text(configuration.schema)]
  }

  /// Makes the tables as they should be, unless they are. A company's tables get triggers only.
  func make(_ plan: MirrorPlan, _ number: Int64, mustBeEmpty: Bool = false) throws {
    let isAdopting = try MirrorLedger(number: number).isAdopting(connection)
    let sql = plan.tables.map {
      MirrorSQL(
        table: $0, schema: configuration.schema, mirror: number, isAdopting: isAdopting)
    }
    let own = sql.filter { $0.table.adoption == nil }
    let schema = "CREATE SCHEMA IF NOT EXISTS \(MirrorSQL.quoted(configuration.schema))"
    let statements =
      (own.isEmpty ? [] : [schema]) + own.flatMap(\.definition) + own.flatMap(\.references)
      + sql.flatMap(\.capture)
    let layout = statements.joined(separator: ";\n")
    let known = try connection.query(
      .once("SELECT FROM ferry_mirror.mirrors WHERE number = $1 AND layout = $2"),
      [.int8(number), .text(layout)])
    guard known.isEmpty else { return }
    // Programs wait behind a statement that waits for a table.
    try connection.execute("SET LOCAL lock_timeout = '2s'")
    for statement in statements { try connection.execute(statement) }
    if mustBeEmpty {
      for sql in sql
      where try !connection.query(.once("SELECT FROM \(sql.target) LIMIT 1")).isEmpty {
        throw MirrorFault(
          description: "table \(configuration.schema).\(sql.table.name) has rows; a mirror begins "
            + "with tables that are empty or absent, or adopts them: see `ferryd mirror adopt`")
      }
    }
    _ = try connection.query(
      .once("UPDATE ferry_mirror.mirrors SET layout = $2 WHERE number = $1"),
      [.int8(number), .text(layout)])
  }
}

import FerryPostgres
import FerryProtocol

/// Describes the rows of a query as those of a table. All calls block.
extension CompanyReader {
  /// Reads the description of a table, or of the rows of a view's query.
  ///
  /// - Throws: ``MirrorFault`` if there is no such table, or if the query fails.
  func table(_ name: String, _ view: ViewSource?) throws -> CompanyTable {
    guard let query = view?.query else { return try table(name) }
    let rows = try described(name, query)
    let places = 0..<rows.columnCount
    var table = CompanyTable(name: name, kind: "v")
    table.columns = try columns(
      Self.queryColumns,
      [
        .array(PostgresArray(places.map { Optional(rows.columnName($0)) })),
        .array(PostgresArray(places.map { Optional(Int64(rows.columnType($0).oid)) })),
        .array(PostgresArray(places.map { Optional(Int64(rows.columnModifier($0))) })),
      ])
    return table
  }

  /// Runs the query for no row: PostgreSQL computes none, and locks the definitions of its tables.
  private func described(_ name: String, _ query: String) throws -> PostgresRows {
    try connection.execute("SAVEPOINT ferry_query")
    do {
      let rows = try connection.query(
        .once("SELECT * FROM \(ViewSource.relation(query)) t LIMIT 0"))
      try connection.execute("RELEASE SAVEPOINT ferry_query")
      return rows
    } catch {
      guard error.kind == .server, !error.isPassing else { throw error }
      // Other tables may have faults as well.
      try connection.execute("ROLLBACK TO SAVEPOINT ferry_query; RELEASE SAVEPOINT ferry_query")
      throw MirrorFault(description: "the query of view \(name) fails: \(error.message)")
    }
  }

  private static let queryColumns = """
    SELECT NULL::oid AS attrelid, c.place::int2 AS attnum, c.name AS attname, c.type::oid AS atttypid,
      c.modifier::int4 AS atttypmod, false AS attnotnull, ''::"char" AS attgenerated,
      ''::"char" AS attidentity, NULL::text AS fallback
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY c(name, type, modifier, place)
    """
}

import FerryPostgres
import FerryProtocol

/// Rows for a space without a mirror, in a table with rows of several spaces.
package struct UnclaimedRows: Sendable, Equatable {
  package var table: Name
  package var column: String
  /// The value of the column, as PostgreSQL writes it; `nil` for NULL.
  package var value: String?
  package var count: Int64
}

extension Mirror {
  /// The most reported values of a table.
  private static let valuesMax: Int64 = 100

  /// Returns the rows of the mirror's tables without any mirror in the database, by their values of
  /// the space column. Reads the tables as a whole.
  package func unclaimedRows() async throws -> [UnclaimedRows] {
    var found: [UnclaimedRows] = []
    for (name, adoption) in configuration.adoptions.sorted(by: { $0.key < $1.key }) {
      guard let space = adoption.space else { continue }
      let schema = configuration.schema
      found += try await pool.run { connection in
        try connection.query(
          .once(
            """
            SELECT v.value, v.count FROM (
              SELECT \(quoted(Name(space.name)))::text AS value, count(*) AS count
              FROM \(quoted(Name(schema))).\(quoted(Name(name))) GROUP BY 1) v
            WHERE NOT EXISTS (SELECT FROM ferry_mirror.adopted a
              JOIN ferry_mirror.mirrors m ON m.number = a.mirror
              WHERE m.schema = $1 AND a.tab = $2 AND a.space_column = $3 AND a.space_value = v.value)
            ORDER BY v.count DESC, v.value LIMIT $4
            """),
          [.text(schema), .text(name), .text(space.name), .int8(Self.valuesMax)]
        ).map { row in
          UnclaimedRows(
            table: Name(name), column: space.name, value: try row.ifPresent(0, as: String.self),
            count: try row.int8(1))
        }
      }
    }
    return found
  }
}

import FerryPostgres
import FerryProtocol

/// The statements for unique keys. Each takes any number of keys, except the statement to free
/// them.
enum PostgresClaims {
  private static let find = PostgresStatement(
    "claims",
    """
    SELECT found.* FROM unnest($2::text[], $3::text[], $4::text[])
      AS wanted(tbl, key_columns, value)
    CROSS JOIN LATERAL (
      SELECT u.tbl, u.key_columns, u.value, u.record FROM unique_keys AS u
      WHERE u.space = $1 AND u.tbl = wanted.tbl AND u.key_columns = wanted.key_columns
        AND u.value = wanted.value OFFSET 0
    ) AS found
    """)

  private static let take = PostgresStatement(
    "claims_save",
    """
    INSERT INTO unique_keys(space, tbl, key_columns, value, record)
    SELECT s.id, u.* FROM spaces AS s
    CROSS JOIN unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS u
    WHERE s.id = $1
    ON CONFLICT (space, tbl, key_columns, value) DO UPDATE SET record = excluded.record
    """)

  private static let free = PostgresStatement(
    "claims_free",
    """
    DELETE FROM unique_keys
    WHERE space = $1 AND tbl = $2 AND key_columns = $3 AND value = $4
    """)

  /// Returns the records with these unique keys; an unclaimed key is absent.
  static func holders(
    _ claims: [UniqueClaim], in space: Int64, on connection: PostgresConnection
  ) throws -> [UniqueClaim: Name] {
    if claims.isEmpty { return [:] }
    let columns = Columns(claims)
    var holders: [UniqueClaim: Name] = [:]
    for row in try connection.query(
      find,
      [.int8(space), .array(columns.tables), .array(columns.keys), .array(columns.values)])
    {
      let claim = UniqueClaim(
        table: try row.name(0), columns: try row.bytes(1), value: try row.bytes(2))
      holders[claim] = try row.name(3)
    }
    return holders
  }

  static func add(
    _ rows: [IngestEffects.ClaimRow], in space: Int64, to pipeline: inout PostgresPipeline
  ) {
    for row in rows where row.record == nil {
      var parameters: PostgresParameters = [.int8(space), .text(row.claim.table.text)]
      parameters.append(utf8: row.claim.columns)
      parameters.append(utf8: row.claim.value)
      pipeline.add(free, parameters)
    }
    let taken = rows.filter { $0.record != nil }
    if taken.isEmpty { return }
    let columns = Columns(taken.map(\.claim))
    var records = PostgresArray<String>(reserving: taken.count)
    for row in taken { records.append(row.record?.text) }
    pipeline.add(
      take,
      [
        .int8(space), .array(columns.tables), .array(columns.keys), .array(columns.values),
        .array(records),
      ])
  }

  private struct Columns {
    var tables: PostgresArray<String>
    var keys: PostgresArray<String>
    var values: PostgresArray<String>

    init(_ claims: [UniqueClaim]) {
      tables = PostgresArray(reserving: claims.count)
      keys = PostgresArray(reserving: claims.count)
      values = PostgresArray(reserving: claims.count)
      for claim in claims {
        tables.append(utf8: claim.table.utf8)
        keys.append(utf8: claim.columns)
        values.append(utf8: claim.value)
      }
    }
  }
}

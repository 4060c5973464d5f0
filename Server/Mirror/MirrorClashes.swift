import FerryPostgres
import FerryProtocol

/// Names the rows of PostgreSQL with the unique values of refused rows; all calls block.
struct MirrorClashes {
  /// Refused rows of a step whose other row is searched: each costs a query.
  private static let namedMax = 1_000

  private let connection: PostgresConnection
  /// The columns of unique constraints and indexes, by table and name.
  private var known: [[String]: [Name]] = [:]
  private var count = 0

  init(_ connection: PostgresConnection) { self.connection = connection }

  /// Returns the reason of a row whose unique value another row has; `nil` if the error is another
  /// one, or if no such row is visible.
  mutating func holder(
    of row: MirrorRow, _ sql: MirrorSQL, _ error: PostgresError
  ) throws -> String? {
    guard error.sqlState == "23505", let constraint = error.constraint, let values = row.values,
      count < Self.namedMax
    else { return nil }
    count += 1
    let columns = try columns(of: constraint, sql)
    let all = zip(sql.table.all, row.key + values)
    let written = columns.compactMap { name in all.first { $0.0.name == name } }
    guard !columns.isEmpty, written.count == columns.count else { return nil }
    let conditions = zip(written, 1...).map { column, place in
      "t.\(quoted(column.0.name)) = \(column.0.type.decoded("$\(place)"))"
    }
    var parameters = PostgresParameters()
    for (column, value) in written { parameters.append(try column.text(of: value)) }
    let found = try connection.query(
      .once(
        """
        SELECT \(sql.keyText("t.")) FROM \(sql.target) t
        WHERE \(conditions.joined(separator: " AND ")) LIMIT 1
        """), parameters
    ).first
    guard let key = try found?.array(0, of: String.self) else { return nil }
    let names = columns.map(\.text).joined(separator: ", ")
    return MirrorFile.reason(sql.table.name.text, key, has: names)
  }

  /// Returns the columns of a unique constraint or index; empty for one over expressions.
  private mutating func columns(of constraint: String, _ sql: MirrorSQL) throws -> [Name] {
    let place = [sql.table.name.text, constraint]
    if let columns = known[place] { return columns }
    let found = try connection.query(
      .once(
        """
        SELECT ARRAY(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY k(num, place)
          LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
          WHERE k.place <= i.indnkeyatts ORDER BY k.place)
        FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = \(quoted(postgres: sql.target))::regclass AND c.relname = $1
        """), [.text(constraint)]
    ).first
    let names = try found?.array(0, of: String.self) ?? []
    let columns = names.contains(nil) ? [] : names.compactMap { $0.map { Name($0) } }
    known[place] = columns
    return columns
  }
}

import FerryProtocol

/// SQL to capture rows as a table has them, also without a write of a program.
struct RecaptureSQL {
  let sql: MirrorSQL

  private var table: MirrorTable { sql.table }

  private func capture(
    from: String, where condition: String, former: String = "NULL"
  ) -> String {
    let holds = sql.holds("t").map { " AND \($0)" } ?? ""
    return """
      \(sql.head) SELECT \(sql.mirror), \(sql.literal),
        CASE WHEN f.fault IS NULL THEN 'S'::"char" ELSE 'X'::"char" END, \(sql.keyText("t.")),
        CASE WHEN f.fault IS NULL THEN \(sql.columnNames) ELSE '{}' END,
        CASE WHEN f.fault IS NULL THEN \(sql.columnTexts("t.")) ELSE ARRAY[f.fault] END, \(former)
      FROM \(from) CROSS JOIN LATERAL (
        SELECT CASE \(sql.faults("t.").joined(separator: " ")) END AS fault) f
      WHERE \(condition)\(sql.andIsOfSpace)\(holds) ORDER BY \(sql.keyColumns) FOR SHARE OF t
      """
  }

  private func place(_ comparison: String, _ parameter: String) -> String {
    "ROW(\(sql.keyColumns)) \(comparison) \(sql.row(parameter))"
  }

  // MARK: Slices

  /// Returns the greatest key.
  var lastKey: String {
    let order = table.key.map { "t.\(quoted($0.name)) DESC" }.joined(separator: ", ")
    return "SELECT \(sql.keyText("t.")) FROM \(sql.target) t ORDER BY \(order) LIMIT 1"
  }

  /// Returns the last key of the next slice, and the number of its rows. The parameters are the
  /// most rows and bytes, and the greatest key; then the last key of the slice before. Triggers
  /// capture the rows of later keys: the slices never follow a program that adds rows.
  func sliceEnd(isFirst: Bool) -> String {
    """
    SELECT s.last, s.count FROM (
      SELECT \(sql.keyText("t.")) AS last, row_number() OVER w AS count,
        sum(pg_column_size(t.*)) OVER w AS bytes FROM (
        SELECT * FROM \(sql.target) t WHERE \(place("<=", "$3::text[]"))
          AND \(isFirst ? "true" : place(">", "$4::text[]"))\(sql.andIsOfSpace)
        ORDER BY \(sql.keyColumns) LIMIT $1::bigint) t
      WINDOW w AS (ORDER BY \(sql.keyColumns) ROWS UNBOUNDED PRECEDING)) s
    WHERE s.count = 1 OR s.bytes <= $2::bigint ORDER BY s.count DESC LIMIT 1
    """
  }

  /// Captures the rows of a slice. It waits for concurrent writes to them, so their newest values
  /// are captured. The parameters are the last key of the slice, and the last key of the slice
  /// before.
  func captureSlice(isFirst: Bool) -> String {
    capture(
      from: "\(sql.target) t",
      where: place("<=", "$1::text[]") + (isFirst ? "" : " AND " + place(">", "$2::text[]")))
  }

  // MARK: Rows missing in the space

  /// Captures the rows with the keys of `unsent` due for a retry, the longest recorded ones first.
  /// The parameter is the most rows.
  var captureUnsent: String {
    capture(
      from: """
        \(sql.target) t JOIN (SELECT key, merges FROM \(MirrorSQL.ledger).unsent
          WHERE mirror = \(sql.mirror) AND tab = \(sql.literal) AND retry ORDER BY at LIMIT $1::bigint) u
        ON ROW(\(sql.keyColumns)) = \(sql.row("u.key"))
        """, where: "true",
      // It marks a retry.
      former: "CASE WHEN f.fault IS NULL AND u.merges THEN '{}'::text[] END")
  }

  /// Captures the delete of rows of `unsent` deleted by programs and due for a retry, the longest
  /// recorded ones first. The parameter is the most rows.
  var captureGone: String {
    """
    INSERT INTO \(MirrorSQL.ledger).captured(mirror, tab, kind, key)
    SELECT u.mirror, u.tab, 'D', u.key FROM \(MirrorSQL.ledger).unsent u
    WHERE u.gone AND u.retry AND \(isAbsent) ORDER BY u.at LIMIT $1::bigint
    """
  }

  /// Forgets rows of `unsent` missing in the table, except those deleted by programs.
  var forgetAbsent: String {
    "DELETE FROM \(MirrorSQL.ledger).unsent u WHERE NOT u.gone AND \(isAbsent)"
  }

  /// The condition of rows `u` of `unsent` missing in the table.
  private var isAbsent: String {
    """
    u.mirror = \(sql.mirror) AND u.tab = \(sql.literal)
      AND NOT EXISTS (SELECT FROM \(sql.travelling) t WHERE ROW(\(sql.keyColumns)) = \(sql.row("u.key")))
    """
  }

  // MARK: Differing rows

  /// Captures a row by key, the parameter.
  var captureRow: String { capture(from: "\(sql.target) t", where: place("=", "$1::text[]")) }

  /// Captures a row as a write of now: the values, or the absence. The parameter is the key.
  func recapture(isInTable: Bool) -> String {
    let head = "INSERT INTO \(MirrorSQL.ledger).captured(mirror, tab, kind, key, names, vals) "
    guard isInTable else {
      // A row of another space is absent from this one.
      let isAbsent = "NOT EXISTS (SELECT FROM \(sql.travelling) t WHERE \(isAtKey))"
      return head
        + "SELECT \(sql.mirror), \(sql.literal), 'D', $1::text[], NULL, NULL WHERE \(isAbsent)"
    }
    return head
      + "SELECT \(sql.mirror), \(sql.literal), 'I', $1::text[], \(sql.columnNames), \(sql.columnTexts("t.")) "
      + "FROM \(sql.target) t WHERE \(isAtKey)"
  }

  /// The condition of a row by key, the parameter.
  private var isAtKey: String {
    zip(table.key, 1...).map { column, index in
      "t.\(quoted(column.name)) = \(column.type.decoded("($1::text[])[\(index)]"))"
    }.joined(separator: " AND ")
  }

  private var isDiffering: String { "ROW(\(sql.keyColumns)) = \(sql.row("d.key"))" }

  var lockDiffering: String {
    "SELECT FROM \(sql.target) t JOIN ferry_differing d ON d.here AND \(isDiffering) FOR SHARE OF t"
  }

  /// Captures the changed columns of changed rows, new rows, and the deletes.
  var captureDiffering: [String] {
    let deletes = """
      \(sql.head) SELECT \(sql.mirror), \(sql.literal), 'D', d.key, NULL, NULL, NULL FROM ferry_differing d
      WHERE NOT d.here AND NOT EXISTS (SELECT FROM \(sql.travelling) t WHERE \(isDiffering))
      """
    return [
      captureChanged,
      capture(
        from: "\(sql.target) t JOIN ferry_differing d ON d.here AND NOT d.there AND \(isDiffering)",
        where: "true"), deletes,
    ].compactMap(\.self)
  }

  private var captureChanged: String? {
    if table.columns.isEmpty { return nil }
    let columns = table.columns.enumerated().map { place, column in
      let (new, old) = ("t.\(quoted(column.name))", "c.\(quoted(column.name))")
      let type = column.type
      return "(\(place), \(quoted(postgres: column.name.text)), \(type.encoded(new)), "
        + "\(type.encoded(old)), \(type.compared(new)) IS DISTINCT FROM \(type.compared(old)))"
    }
    let on = table.key.map { "c.\(quoted($0.name)) = t.\(quoted($0.name))" }
    return """
      \(sql.head) SELECT \(sql.mirror), \(sql.literal),
        CASE WHEN f.fault IS NULL THEN 'U'::"char" ELSE 'X'::"char" END, d.key,
        CASE WHEN f.fault IS NULL THEN v.names ELSE '{}' END,
        CASE WHEN f.fault IS NULL THEN v.news ELSE ARRAY[f.fault] END,
        CASE WHEN f.fault IS NULL THEN v.olds END
      FROM ferry_differing d JOIN \(sql.travelling) t ON \(isDiffering)
        JOIN ferry_copy c ON \(on.joined(separator: " AND "))
        CROSS JOIN LATERAL (
          SELECT array_agg(x.name ORDER BY x.place) AS names, array_agg(x.new ORDER BY x.place) AS news,
            array_agg(x.old ORDER BY x.place) AS olds
          FROM (VALUES \(columns.joined(separator: ", "))) x(place, name, new, old, differs)
          WHERE x.differs) v
        CROSS JOIN LATERAL (SELECT CASE \(sql.faults("t.").joined(separator: " ")) END AS fault) f
      WHERE v.names IS NOT NULL
      """
  }

  /// Captures rows whose delete is captured, and that are there.
  var captureReturned: String {
    capture(
      from: """
        \(sql.target) t JOIN (SELECT key FROM \(MirrorSQL.ledger).captured
          WHERE mirror = \(sql.mirror) AND tab = \(sql.literal) AND kind = 'D') d ON \(isDiffering)
        """, where: "true")
  }
}

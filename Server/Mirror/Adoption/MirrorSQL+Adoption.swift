import FerryProtocol

/// SQL for a company's own table with an unchanged definition.
extension MirrorSQL {
  // MARK: The travelling rows

  /// Returns the SQL of the travelling rows' condition; `nil` if all rows travel. The condition
  /// sees the row by the name of the table.
  func holds(_ row: String) -> String? {
    let isOurs = isOfSpace(row)
    guard let condition = table.adoption?.condition else {
      return isOurs.map { "coalesce(\($0), false)" }
    }
    // A comment in the condition ends with the line.
    let holds = """
      (SELECT coalesce((\(condition)
      ), false) FROM (SELECT \(row).*) AS \(quoted(table.name)))
      """
    guard let isOurs else { return holds }
    // A condition may fail for rows of other spaces.
    return "CASE WHEN \(isOurs) THEN \(holds) ELSE false END"
  }

  /// The SQL of whether a row belongs to the mirror's space, in a form for indexes; `nil` if all
  /// do.
  func isOfSpace(_ row: String) -> String? {
    table.adoption?.space.map {
      "\(row).\(quoted(Name($0.name))) = \(quoted(postgres: $0.value))"
    }
  }

  private var andIsOfSpace: String { isOfSpace("t").map { " AND \($0)" } ?? "" }

  /// The travelling rows of the table.
  var travelling: String {
    holds("t").map { "(SELECT * FROM \(target) t WHERE \($0)\(andIsOfSpace))" } ?? target
  }

  /// The number of rows, as a company's table of one space has them about.
  var estimate: String {
    if let isOurs = isOfSpace("t") { return "(SELECT count(*) FROM \(target) t WHERE \(isOurs))" }
    return """
      (SELECT CASE WHEN reltuples < 0 THEN (SELECT count(*) FROM \(target)) ELSE reltuples::bigint END
        FROM pg_class WHERE oid = \(quoted(postgres: target))::regclass)
      """
  }

  /// A query to fail if the condition is wrong.
  var check: String { "SELECT FROM \(travelling) t LIMIT 1" }

  /// A query to fail if the table cannot have the space's definition: an administrator of the space
  /// may change it, and a company its table. The functions that capture would record no write then.
  var fits: String {
    """
    SELECT \(keyText("t.")), \(columnTexts("t.")), CASE \(faults("t.").joined(separator: " ")) END
    FROM \(target) t LIMIT 0
    """
  }

  // MARK: Capture

  /// Reports a captured write, if no trigger of the statement does.
  var tellRow: String {
    if table.adoption?.space == nil { return "" }
    return "\n  \(MirrorLedger.notification(of: mirror))"
  }

  /// The triggers of a table with rows of several spaces. The functions of the other spaces'
  /// mirrors do not run.
  func spaceTriggers(_ space: SpaceColumn) -> [String] {
    let literal = quoted(postgres: space.value)
    let isOurs = { (row: String) in "\(row).\(quoted(Name(space.name))) = \(literal)" }
    let (old, new) = (isOurs("OLD"), isOurs("NEW"))
    return [("INSERT", new), ("UPDATE", "\(old) OR \(new)"), ("DELETE", old)].map {
      event, condition in
      trigger(
        event.lowercased(),  // text: one of three words
        "AFTER \(event) ON \(target) FOR EACH ROW WHEN (\(condition)) "
          + "EXECUTE FUNCTION \(function)()")
    }
  }

  // MARK: Slices

  func row(_ texts: String) -> String {
    let parts = zip(table.key, 1...).map { $0.type.decoded("(\(texts))[\($1)]") }
    return "ROW(\(parts.joined(separator: ", ")))"
  }

  var keyColumns: String {
    table.key.map { "t.\(quoted($0.name))" }.joined(separator: ", ")
  }

  private func place(_ comparison: String, _ parameter: String) -> String {
    "ROW(\(keyColumns)) \(comparison) \(row(parameter))"
  }

  /// Returns the greatest key.
  var lastKey: String {
    let order = table.key.map { "t.\(quoted($0.name)) DESC" }.joined(separator: ", ")
    return "SELECT \(keyText("t.")) FROM \(target) t ORDER BY \(order) LIMIT 1"
  }

  /// Returns the last key of the next slice, and the number of its rows. The parameters are the
  /// most rows and bytes, and the greatest key; then the last key of the slice before. Triggers
  /// capture the rows of later keys: the slices never follow a program that adds rows.
  func sliceEnd(isFirst: Bool) -> String {
    """
    SELECT s.last, s.count FROM (
      SELECT \(keyText("t.")) AS last, row_number() OVER w AS count,
        sum(pg_column_size(t.*)) OVER w AS bytes FROM (
        SELECT * FROM \(target) t WHERE \(place("<=", "$3::text[]"))
          AND \(isFirst ? "true" : place(">", "$4::text[]"))\(andIsOfSpace)
        ORDER BY \(keyColumns) LIMIT $1::bigint) t
      WINDOW w AS (ORDER BY \(keyColumns) ROWS UNBOUNDED PRECEDING)) s
    WHERE s.count = 1 OR s.bytes <= $2::bigint ORDER BY s.count DESC LIMIT 1
    """
  }

  /// Captures the rows of a slice. It waits for concurrent writes to them, so their newest values
  /// are captured. The parameters are the last key of the slice, and the last key of the slice
  /// before.
  func captureSlice(isFirst: Bool) -> String {
    capture(
      from: "\(target) t",
      where: place("<=", "$1::text[]") + (isFirst ? "" : " AND " + place(">", "$2::text[]")))
  }

  /// Captures the rows with the keys of `unsent` due for a retry, the longest recorded ones first.
  /// The parameter is the most rows.
  var captureUnsent: String {
    capture(
      from: """
        \(target) t JOIN (SELECT key FROM \(Self.ledger).unsent
          WHERE mirror = \(mirror) AND tab = \(name) AND retry ORDER BY at LIMIT $1::bigint) u
        ON ROW(\(keyColumns)) = \(row("u.key"))
        """, where: "true")
  }

  /// Captures a row by key, the parameter.
  var captureRow: String { capture(from: "\(target) t", where: place("=", "$1::text[]")) }

  // MARK: Adopting again

  /// The statements of a comparison with the rows of a removed mirror: a table for the keys of
  /// differing rows.
  var makeDiffering: String {
    "CREATE TEMP TABLE ferry_differing(key text[], here boolean, there boolean) ON COMMIT DROP"
  }

  /// Finds the differing rows.
  var fillDiffering: String {
    """
    INSERT INTO ferry_differing SELECT f.key, f.here, f.there
    FROM (\(differences(withDeferred: true, withCaptured: true))) f
    """
  }

  private var isDiffering: String { "ROW(\(keyColumns)) = \(row("d.key"))" }

  var lockDiffering: String {
    "SELECT FROM \(target) t JOIN ferry_differing d ON d.here AND \(isDiffering) FOR SHARE OF t"
  }

  /// Captures the changed columns of changed rows, new rows, and the deletes.
  var captureDiffering: [String] {
    let deletes = """
      \(head) SELECT \(mirror), \(name), 'D', d.key, NULL, NULL, NULL FROM ferry_differing d
      WHERE NOT d.here AND NOT EXISTS (SELECT FROM \(travelling) t WHERE \(isDiffering))
      """
    return [
      captureChanged,
      capture(
        from: "\(target) t JOIN ferry_differing d ON d.here AND NOT d.there AND \(isDiffering)",
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
      \(head) SELECT \(mirror), \(name),
        CASE WHEN f.fault IS NULL THEN 'U'::"char" ELSE 'X'::"char" END, d.key,
        CASE WHEN f.fault IS NULL THEN v.names ELSE '{}' END,
        CASE WHEN f.fault IS NULL THEN v.news ELSE ARRAY[f.fault] END,
        CASE WHEN f.fault IS NULL THEN v.olds END
      FROM ferry_differing d JOIN \(travelling) t ON \(isDiffering)
        JOIN ferry_copy c ON \(on.joined(separator: " AND "))
        CROSS JOIN LATERAL (
          SELECT array_agg(x.name ORDER BY x.place) AS names, array_agg(x.new ORDER BY x.place) AS news,
            array_agg(x.old ORDER BY x.place) AS olds
          FROM (VALUES \(columns.joined(separator: ", "))) x(place, name, new, old, differs)
          WHERE x.differs) v
        CROSS JOIN LATERAL (SELECT CASE \(faults("t.").joined(separator: " ")) END AS fault) f
      WHERE v.names IS NOT NULL
      """
  }

  /// Captures rows whose delete is captured, and that are there.
  var captureReturned: String {
    capture(
      from: """
        \(target) t JOIN (SELECT key FROM \(Self.ledger).captured
          WHERE mirror = \(mirror) AND tab = \(name) AND kind = 'D') d ON \(isDiffering)
        """, where: "true")
  }

  private func capture(from: String, where condition: String) -> String {
    let holds = holds("t").map { " AND \($0)" } ?? ""
    return """
      \(head) SELECT \(mirror), \(name),
        CASE WHEN f.fault IS NULL THEN 'S'::"char" ELSE 'X'::"char" END, \(keyText("t.")),
        CASE WHEN f.fault IS NULL THEN \(columnNames) ELSE '{}' END,
        CASE WHEN f.fault IS NULL THEN \(columnTexts("t.")) ELSE ARRAY[f.fault] END, NULL
      FROM \(from) CROSS JOIN LATERAL (
        SELECT CASE \(faults("t.").joined(separator: " ")) END AS fault) f
      WHERE \(condition)\(andIsOfSpace)\(holds) ORDER BY \(keyColumns) FOR SHARE OF t
      """
  }

  // MARK: Applying

  /// Returns the condition of rows that the space may change or delete. Rows different in the
  /// space, and rows that do not travel, are the company's alone.
  func isShared(_ key: String) -> String {
    " AND NOT \(isUnsent(key))" + (holds("t").map { " AND \($0)" } ?? "")
  }

  /// Returns the condition of rows that the space does not have as programs have written or deleted
  /// them.
  func isUnsent(_ key: String) -> String {
    """
    EXISTS (SELECT FROM \(Self.ledger).unsent u WHERE u.mirror = \(mirror)
      AND u.tab = \(name) AND u.key = \(key))
    """
  }

  /// The key of a row of the parameters, as it is stored.
  var keyParameters: String {
    "ARRAY[\(table.key.indices.map { "x.k\($0)" }.joined(separator: ", "))]::text[]"
  }

  /// Changes existing rows. Triggers and defaults of an insert do not concern them.
  var update: String? {
    guard !table.columns.isEmpty else { return nil }
    let sets = table.columns.map { "\(quoted($0.name)) = x.\(quoted($0.name))" }
    let typed = zip(table.all, values).map { column, value in
      "\(value) AS \(quoted(column.name))"
    }
    let on = table.key.map { "t.\(quoted($0.name)) = x.\(quoted($0.name))" }
    return """
      UPDATE \(target) t SET \(sets.joined(separator: ", "))
      FROM (SELECT \(typed.joined(separator: ", ")) FROM \(source(keysOnly: false))) x
      WHERE \(on.joined(separator: " AND ")) AND \(differs("t", "x"))\(
        isShared(keyText("t.")))
      """
  }

  /// Adds missing rows. An existing row with ON CONFLICT alone would fail if a column is required
  /// here, and unknown to the space.
  var insert: String {
    var (names, values) = (table.all.map { quoted($0.name) }, self.values)
    if let space = table.adoption?.space, table.column(Name(space.name)) == nil {
      names.append(quoted(Name(space.name)))
      values.append(quoted(postgres: space.value))
    }
    // A conflict of a number is one of two records: the step begins again.
    let conflict =
      table.isMapped
      ? "" : "ON CONFLICT (\(quoted(list: table.key.map(\.name)))) DO NOTHING"
    return """
      INSERT INTO \(target) (\(names.joined(separator: ", "))) OVERRIDING SYSTEM VALUE
      SELECT \(values.joined(separator: ", ")) FROM \(source(keysOnly: false))
      WHERE NOT \(isUnsent(keyParameters)) AND NOT EXISTS (SELECT FROM \(target) t WHERE \(matches))
      \(conflict)
      """
  }
}

extension MirrorSQL {
  /// Forgets rows of `unsent` missing in the table, except those deleted by programs.
  var forgetAbsent: String {
    "DELETE FROM \(Self.ledger).unsent u WHERE NOT u.gone AND \(isAbsent)"
  }

  /// Forgets deleted rows of `unsent` that the space has deleted, too.
  var forgetGone: String {
    """
    DELETE FROM \(Self.ledger).unsent u USING \(source(keysOnly: true))
    WHERE u.mirror = \(mirror) AND u.tab = \(quoted(postgres: table.name.text)) AND u.gone
      AND u.key = \(keyParameters)
    """
  }

  /// Removes the rows of the parameters from the deferred ones.
  var resolve: String {
    """
    DELETE FROM \(Self.ledger).deferred d USING \(source(keysOnly: true))
    WHERE d.mirror = \(mirror) AND d.tab = \(quoted(postgres: table.name.text)) AND d.retry
      AND d.key = \(keyParameters)
    """
  }

  /// Makes rows of `unsent` due for a retry if they wait for the records of the parameters.
  var freeHeld: String {
    """
    UPDATE \(Self.ledger).unsent u SET retry = true FROM \(source(keysOnly: true))
    WHERE u.mirror = \(mirror) AND u.tab = \(quoted(postgres: table.name.text))
      AND u.holder = \(keyParameters) AND NOT u.retry
    """
  }

  /// Captures the delete of rows of `unsent` deleted by programs and due for a retry, the longest
  /// recorded ones first. The parameter is the most rows.
  var captureGone: String {
    """
    INSERT INTO \(Self.ledger).captured(mirror, tab, kind, key)
    SELECT u.mirror, u.tab, 'D', u.key FROM \(Self.ledger).unsent u
    WHERE u.gone AND u.retry AND \(isAbsent) ORDER BY u.at LIMIT $1::bigint
    """
  }

  /// The condition of rows `u` of `unsent` missing in the table.
  private var isAbsent: String {
    """
    u.mirror = \(mirror) AND u.tab = \(quoted(postgres: table.name.text))
      AND NOT EXISTS (SELECT FROM \(travelling) t WHERE ROW(\(keyColumns)) = \(row("u.key")))
    """
  }
}

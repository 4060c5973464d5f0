import FerryProtocol

/// SQL to capture the logged rows of a table.
struct LoggedRowsSQL {
  let sql: MirrorSQL

  /// The parameters of a table's logged rows.
  static let parameters = 5

  /// Returns the SQL of the captured writes of logged rows, with the columns of
  /// ``capture(_:)``. The parameters are places, transactions, times, former rows and rows.
  ///
  /// - Parameter first: the number of the first parameter.
  private func selection(first: Int) -> String {
    let arrays = zip(
      ["bigint", "text", "bigint", "text", "text"], first...
    ).map { "$\($1)::\($0)[]" }.joined(separator: ", ")
    let (old, new) = ("(x.o)", "(x.n)")
    let (name, target) = (sql.literal, sql.target)
    let faults = { (row: String) in "CASE \(sql.faults(row + ".").joined(separator: " ")) END" }
    let formerFault =
      sql.table.adoption == nil ? "NULL::text" : "CASE WHEN t.travelled THEN \(faults(old)) END"
    return """
      SELECT x.place, v.part, x.xid, x.at, \(name)::text AS tab, v.kind, v.key, v.names, v.vals, v.olds
      FROM (SELECT r.place, r.xid::xid8 AS xid,
          timestamptz '2000-01-01 00:00:00+00' + r.at * interval '1 microsecond' AS at,
          r.o IS NOT NULL AS was, r.n IS NOT NULL AS is, r.o::\(target) AS o, r.n::\(target) AS n
        FROM unnest(\(arrays)) r(place, xid, at, o, n) OFFSET 0) x
      CROSS JOIN LATERAL (SELECT
        CASE WHEN x.was THEN \(sql.holds(old) ?? "true") ELSE false END AS travelled,
        CASE WHEN x.is THEN \(sql.holds(new) ?? "true") ELSE false END AS travels OFFSET 0) t
      CROSS JOIN LATERAL (SELECT
        CASE WHEN t.travelled THEN \(sql.keyText(old + ".")) END AS former,
        CASE WHEN t.travels THEN \(sql.keyText(new + ".")) END AS key,
        CASE WHEN t.travels THEN \(faults(new)) END AS fault,
        \(formerFault) AS former_fault OFFSET 0) f
      CROSS JOIN LATERAL (\(loggedWrites)) v
      """
  }

  private var loggedWrites: String {
    let all = "\(sql.columnNames), \(sql.columnTexts("(x.n)."))"
    let isOther = "(t.travelled AND f.key IS DISTINCT FROM f.former)"
    let isNew =
      sql.isAdopting && sql.table.adoption != nil
      ? "true" : "(NOT t.travelled OR f.former_fault IS NOT NULL)"
    let parts = [
      """
      SELECT 0 AS part, 'D'::"char" AS kind, f.former AS key, NULL::text[] AS names,
        NULL::text[] AS vals, NULL::text[] AS olds
      WHERE t.travelled AND (NOT t.travels OR f.fault IS NOT NULL AND \(isOther))
      """,
      """
      SELECT 1, 'X', f.key, '{}', ARRAY[f.fault], NULL WHERE t.travels AND f.fault IS NOT NULL
      """,
      """
      SELECT 2, 'K', f.key, \(all), f.former WHERE t.travels AND f.fault IS NULL AND \(isOther)
      """,
      """
      SELECT 3, 'I', f.key, \(all), NULL
      WHERE t.travels AND f.fault IS NULL AND NOT \(isOther) AND \(isNew)
      """,
    ]
    return (parts + [changedPart(isOther: isOther, isNew: isNew)].compactMap(\.self))
      .joined(separator: "\nUNION ALL ")
  }

  /// An update with the changed columns; `nil` for a table without any.
  private func changedPart(isOther: String, isNew: String) -> String? {
    guard !sql.table.columns.isEmpty else { return nil }
    let rows = sql.table.columns.enumerated().map { place, column in
      let (old, new) = ("(x.o).\(quoted(column.name))", "(x.n).\(quoted(column.name))")
      let isChanged = "\(column.type.compared(new)) IS DISTINCT FROM \(column.type.compared(old))"
      return """
        (\(place), \(quoted(postgres: column.name.text))::text, \(column.type.encoded(new)),
          \(column.type.encoded(old)), \(isChanged))
        """
    }
    return """
      SELECT 4, 'U', f.key, c.names, c.vals, c.olds FROM (
        SELECT array_agg(name ORDER BY n) AS names, array_agg(val ORDER BY n) AS vals,
          array_agg(old ORDER BY n) AS olds
        FROM (VALUES \(rows.joined(separator: ", "))) c(n, name, val, old, changed) WHERE changed) c
      WHERE t.travels AND f.fault IS NULL AND NOT \(isOther) AND NOT \(isNew)
        AND c.names IS NOT NULL
      """
  }

  /// Removes logged rows of a transaction. The parameters are the transaction and the keys. The
  /// answers stay: the step has captured them after the mark.
  func forgetCaptured(_ forgotten: LogMark.Forgotten) -> String {
    let keys = """
      SELECT ARRAY(SELECT json_array_elements_text(e)) AS key FROM json_array_elements($2::text::json) e
      """
    let isOther = "NOT (\(AnswerSQL.isAnswer("c")))"
    let kinds: String
    switch forgotten {
    case .overwritten:
      return OverwriteSQL(sql: sql).forget(keys, in: "$1::text::xid8", where: isOther)
    // Amounts of overwritten updates are from before the statement.
    case .all: kinds = "c.kind <> '\(OverwriteSQL.kind)' AND \(isOther)"
    case .updates: kinds = "c.kind = 'U'"
    }
    return """
      DELETE FROM \(MirrorSQL.ledger).captured c USING (\(keys)) k
      WHERE c.xid = $1::text::xid8 AND c.mirror = \(sql.mirror) AND c.tab = \(sql.literal)
        AND c.key = k.key AND \(kinds)
      """
  }

  /// Captures logged rows of several tables in the order of the log.
  static func capture(_ tables: [MirrorSQL]) -> String {
    let selections = tables.enumerated().map { index, sql in
      LoggedRowsSQL(sql: sql).selection(first: index * parameters + 1)
    }
    return """
      INSERT INTO \(MirrorSQL.ledger).captured(mirror, xid, at, tab, kind, key, names, vals, olds)
      SELECT \(tables.first?.mirror ?? 0), xid, at, tab, kind, key, names, vals, olds
      FROM (\(selections.joined(separator: "\nUNION ALL "))) l ORDER BY place, part
      """
  }
}

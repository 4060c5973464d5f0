import FerryProtocol

extension LoggedParts {
  /// The parameters of a part's logged rows: places, transactions, times, mirrors whose steps have
  /// written them, former rows and rows.
  static let parameters = 6

  private static let ledger = MirrorSQL.ledger

  /// Captures logged rows of several parts in the order of the log. Returns the mirrors.
  func capture(_ used: [Int]) -> String {
    let selections = used.enumerated().map { index, part in
      parts[part].selection(first: index * Self.parameters + 1)
    }
    return """
      WITH w AS (
        INSERT INTO \(Self.ledger).captured(mirror, xid, at, tab, kind, key, names, vals, olds)
        SELECT mirror, xid, at, tab, kind, key, names, vals, olds
        FROM (\(selections.joined(separator: "\nUNION ALL "))) l ORDER BY place, part, mirror
        RETURNING mirror)
      SELECT DISTINCT mirror FROM w
      """
  }

  /// Records the values of rows without a mirror, and notifies the group. The parameters are the
  /// group's number and the rows.
  static func want(_ table: LoggedTable) -> String {
    let value = "(r.n::\(table.target)).\(quoted(Name(table.column ?? "")))::text"
    return """
      INSERT INTO \(ledger).wanted(grp, value) SELECT $1, v.value
      FROM (SELECT DISTINCT \(value) AS value FROM unnest($2::text[]) r(n)) v
      WHERE octet_length(v.value) BETWEEN 1 AND \(MirrorGroupTables.valueBytesMax)
        AND NOT EXISTS (SELECT FROM \(ledger).wanted w WHERE w.value = v.value AND w.grp = $1)
        AND NOT EXISTS (SELECT FROM \(ledger).logged d WHERE d.log = -$1 AND d.value = v.value)
      RETURNING value
      """
  }

  /// Removes a mirror's logged rows of a transaction. The parameters are the transaction and the
  /// keys. The answers stay: the step has captured them after the mark.
  static func forgetCaptured(
    _ forgotten: LogMark.Forgotten, of mirror: Int64, _ table: LoggedTable
  ) -> String {
    let keys = """
      SELECT ARRAY(SELECT json_array_elements_text(e)) AS key FROM json_array_elements($2::text::json) e
      """
    let isOther = "NOT (\(AnswerSQL.isAnswer("c")))"
    let literal = quoted(postgres: table.name)
    let kinds: String
    switch forgotten {
    case .overwritten:
      return OverwriteSQL(mirror: mirror, literal: literal, merging: table.merging)
        .forget(keys, in: "$1::text::xid8", where: isOther)
    // Amounts of overwritten updates are from before the statement.
    case .all: kinds = "c.kind <> '\(OverwriteSQL.kind)' AND \(isOther)"
    case .updates: kinds = "c.kind = 'U'"
    }
    return """
      DELETE FROM \(ledger).captured c USING (\(keys)) k
      WHERE c.xid = $1::text::xid8 AND c.mirror = \(mirror) AND c.tab = \(literal)
        AND c.key = k.key AND \(kinds)
      """
  }
}

extension LoggedParts.Part {
  /// Returns the SQL of the captured writes of logged rows.
  ///
  /// - Parameter first: the number of the first parameter.
  fileprivate func selection(first: Int) -> String {
    let arrays = zip(
      ["bigint", "text", "bigint", "bigint", "text", "text"], first...
    ).map { "$\($1)::\($0)[]" }.joined(separator: ", ")
    return """
      SELECT x.place, v.part, x.mirror, x.xid, x.at, \(quoted(postgres: table.name))::text AS tab,
        v.kind, v.key, v.names, v.vals, v.olds
      FROM (SELECT r.place, r.xid, r.at, r.o, r.n, m.mirror, m.adopting, m.had, m.has
        FROM (SELECT r.place, r.own, r.xid::xid8 AS xid,
            timestamptz '2000-01-01 00:00:00+00' + r.at * interval '1 microsecond' AS at,
            r.o IS NOT NULL AS had, r.n IS NOT NULL AS has,
            r.o::\(table.target) AS o, r.n::\(table.target) AS n
          FROM unnest(\(arrays)) r(place, xid, at, own, o, n) OFFSET 0) r
        CROSS JOIN LATERAL (\(table.column.map(membersOfRow) ?? allMembers)) m
        WHERE m.mirror IS DISTINCT FROM r.own OFFSET 0) x
      \(table.writes)
      """
  }

  private var allMembers: String {
    let rows = mirrors.map { "(\($0.mirror)::bigint, \($0.isAdopting))" }
    return """
      SELECT a.mirror, a.adopting, r.had, r.has
      FROM (VALUES \(rows.joined(separator: ", "))) a(mirror, adopting)
      """
  }

  /// The mirrors of a row before and after a change, each once.
  private func membersOfRow(_ column: String) -> String {
    let place = { (row: String) in
      "(\(map) ->> (r.\(row)).\(quoted(Name(column)))::text)::bigint"
    }
    return """
      SELECT abs(s.mirror) AS mirror, s.mirror < 0 AS adopting, s.had, s.has
      FROM (SELECT \(place("o")) AS source, \(place("n")) AS target OFFSET 0) k
      CROSS JOIN LATERAL (
        SELECT k.source, r.had, r.has AND k.target IS NOT DISTINCT FROM k.source
        WHERE k.source IS NOT NULL
        UNION ALL SELECT k.target, false, r.has
        WHERE k.target IS NOT NULL AND k.target IS DISTINCT FROM k.source) s(mirror, had, has)
      """
  }

  /// A JSON object with the mirror of each value; negative if rows may not be in the space yet.
  private var map: String {
    let members = mirrors.filter { $0.value != nil }
    let values = members.map { quoted(postgres: $0.value ?? "") }
    let numbers = members.map { "'\($0.isAdopting ? -$0.mirror : $0.mirror)'" }
    return "jsonb_object(ARRAY[\(values.joined(separator: ", "))]::text[], "
      + "ARRAY[\(numbers.joined(separator: ", "))]::text[])"
  }
}

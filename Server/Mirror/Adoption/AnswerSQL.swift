import FerryPostgres
import FerryProtocol

/// SQL of the answers of a company's table to the rows of a step: the space gets the table's row.
struct AnswerSQL {
  let sql: MirrorSQL

  /// The columns whose values the space takes back. The rules of the others may keep a value
  /// whatever is written after it, so the row would travel without an end.
  private var returnable: [MirrorColumn] {
    sql.table.columns.filter { ![.max, .min, .setUnion].contains($0.policy) }
  }

  /// Returns the condition of captured rows that are answers. One whose row no device can hold has
  /// former values, too.
  static func isAnswer(_ row: String) -> String {
    "\(row).kind = 'A' OR \(row).kind = 'X' AND \(row).olds IS NOT NULL"
  }

  /// Removes captured updates of rows that the step has captured as a whole: a trigger's change of a
  /// counter would count twice. Updates behind the whole row stay. `nil` if the log's reader does it:
  /// see ``StepSQL/made(_:)``.
  var forgetMadeUpdates: String? {
    guard sql.capture != .log else { return nil }
    return """
      DELETE FROM \(MirrorSQL.ledger).captured c USING \(MirrorSQL.ledger).captured a
      WHERE c.mirror = \(sql.mirror) AND c.xid = pg_current_xact_id() AND c.kind = 'U'
        AND a.mirror = c.mirror AND a.xid = c.xid AND a.kind = 'A' AND a.tab = c.tab
        AND a.key = c.key AND c.id < a.id
      """
  }

  /// Captures the written rows that PostgreSQL has in another form, or has not: triggers, types and
  /// conditions of the table may change them. The parameters are those of the write. Returns a row
  /// for each.
  func captureMade(isDelete: Bool) -> String {
    let isThere = "t.\(quoted(sql.table.key[0].name)) IS NOT NULL"
    guard !isDelete else { return captureAnswers(isDelete: true, where: mayDiffer + isThere) }
    let differing = returnable.map { column in
      let place = sql.table.columns.firstIndex(of: column) ?? 0
      let stored = column.type.stored("t.\(quoted(column.name))")
      return
        "\(stored) IS DISTINCT FROM \(column.type.compared(column.type.decoded("x.c\(place)")))"
    }
    return captureAnswers(
      isDelete: false, words: forbidden,
      where: "\(mayDiffer)(\((["NOT (\(isThere))"] + differing).joined(separator: " OR ")))")
  }

  /// The beginning of a condition of differing rows: in a table of the mirror's own, only programs'
  /// triggers and rules change them. Without any, PostgreSQL does not look at the rows.
  private var mayDiffer: String {
    if sql.table.adoption != nil { return "" }
    let relation = "\(quoted(postgres: sql.target))::regclass"
    return """
      (EXISTS (SELECT FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid
          WHERE g.tgrelid = \(relation) AND NOT g.tgisinternal
            AND p.pronamespace <> '\(MirrorSQL.ledger)'::regnamespace)
        OR EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class = \(relation))) AND 
      """
  }

  private func literal(_ reason: String) -> String {
    quoted(postgres: MirrorAnswers.shown(reason))
  }

  private var isDenied: String { literal(sql.table.denial) }

  /// The SQL of the reason for a row that the mirror's role may not write, or with another value in
  /// a column that it may not write; `nil` if it may write all.
  private var forbidden: String? {
    let limits = sql.table.limits
    let names = limits.readOnly + limits.unset
    let columns = returnable.filter { names.contains($0.name.text) }
    if columns.isEmpty, limits.missing.isEmpty { return nil }
    let cases = columns.map { column in
      let place = sql.table.columns.firstIndex(of: column) ?? 0
      return """
        WHEN \(column.type.stored("t.\(quoted(column.name))")) IS DISTINCT FROM
          \(column.type.compared(column.type.decoded("x.c\(place)"))) THEN \(
            literal("permission denied for column \(column.name) of table \(sql.table.name)"))
        """
    }
    let (isFixed, isClosed) = (
      limits.missing.contains(.update), limits.missing.contains(.insert)
    )
    return
      "CASE WHEN t.\(quoted(sql.table.key[0].name)) IS NULL THEN \(isClosed ? isDenied : "NULL") "
      + (isFixed ? "ELSE \(isDenied)" : cases.joined(separator: " ")) + " END"
  }

  /// Captures the table's rows in place of refused ones. The parameters are those of the write, and
  /// the reasons. Returns the keys.
  func captureRefused(isDelete: Bool) -> String {
    let reason = "r\(sql.table.key.count + (isDelete ? 0 : sql.table.columns.count))"
    var conditions = ["true"]
    if !isDelete {
      // The space would keep such a value.
      let others = sql.table.columns.enumerated().filter { !returnable.contains($0.element) }
      conditions += others.map { place, column in
        let text = column.type.encoded("t.\(quoted(column.name))")
        return
          "(t.\(quoted(sql.table.key[0].name)) IS NULL OR \(text) IS NOT DISTINCT FROM x.c\(place))"
      }
    }
    return captureAnswers(
      isDelete: isDelete, reason: reason, where: conditions.joined(separator: " AND "))
  }

  private var name: String { sql.literal }

  /// - Parameters:
  ///   - reason: the name of the last parameter, with the reasons.
  ///   - words: the SQL of the reason, if no parameter has it.
  private func captureAnswers(
    isDelete: Bool, reason: String? = nil, words: String? = nil, where condition: String
  ) -> String {
    let keys = sql.table.key.indices.map { "k\($0)" }
    let names = keys + (isDelete ? [] : sql.table.columns.indices.map { "c\($0)" })
    let parameters = (names + [reason].compactMap(\.self)).enumerated().map {
      "$\($0.offset + 1)::text[]"
    }
    let sent = isDelete ? "NULL" : sql.list(sql.table.columns.indices.map { "x.c\($0)" })
    let isThere = "t.\(quoted(sql.table.key[0].name)) IS NOT NULL"
    return """
      INSERT INTO \(MirrorSQL.ledger).captured(mirror, tab, kind, key, names, vals, olds, reason)
      SELECT \(sql.mirror), \(name),
        CASE WHEN f.fault IS NULL THEN 'A'::"char" ELSE 'X'::"char" END, \(sql.keyParameters),
        CASE WHEN f.fault IS NULL THEN \(sql.columnNames) ELSE '{}' END,
        CASE WHEN f.fault IS NOT NULL THEN ARRAY[f.fault]
          WHEN \(isThere) THEN \(sql.columnTexts("t.")) END,
        CASE WHEN f.fault IS NULL THEN \(sent) ELSE '{}'::text[] END,
        \(reason.map { "x.\($0)" } ?? words ?? "NULL")
      FROM unnest(\(parameters.joined(separator: ", ")))
          AS x(\((names + [reason].compactMap(\.self)).joined(separator: ", ")))
        LEFT JOIN \(sql.travelling) t ON \(sql.matches)
        CROSS JOIN LATERAL (SELECT CASE WHEN \(isThere)
          THEN CASE \(sql.faults("t.").joined(separator: " ")) END END AS fault) f
      WHERE NOT \(sql.isUnsent(sql.keyParameters)) AND (\(condition))
      RETURNING key, kind
      """
  }

  /// Forgets answers for which a program has inserted a row since: the program's write is captured,
  /// too, and may be read before.
  var forgetAnswers: String {
    """
    DELETE FROM \(MirrorSQL.ledger).captured c
    WHERE c.mirror = \(sql.mirror) AND c.tab = \(name) AND c.kind = 'A' AND c.vals IS NULL
      AND EXISTS (SELECT FROM \(sql.travelling) t WHERE ROW(\(sql.keyColumns)) = \(sql.row("c.key")))
    """
  }
}

extension MirrorLedger {
  /// Forgets answers overtaken by programs.
  func forgetAnswers(_ sql: [MirrorSQL], _ connection: PostgresConnection) throws {
    let found = try connection.query(
      .once(
        """
        SELECT DISTINCT tab FROM ferry_mirror.captured
        WHERE mirror = $1 AND kind = 'A' AND vals IS NULL
        """), [.int8(number)])
    for row in found {
      let name = try row.text(0)
      guard let sql = sql.first(where: { $0.table.name.text == name }) else { continue }
      _ = try connection.query(.once(AnswerSQL(sql: sql).forgetAnswers))
    }
  }
}

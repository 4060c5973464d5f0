import FerryProtocol

/// SQL of a step, which brings the replica's rows into a table. The parameters are arrays: one for each
/// column.
struct StepSQL {
  let sql: MirrorSQL

  private var table: MirrorTable { sql.table }
  private var isLogged: Bool { sql.capture == .log }

  /// Locks the rows of given keys, so a writer waits until their new values are visible.
  var lock: String {
    "SELECT FROM \(sql.target) t JOIN \(sql.source(keysOnly: true)) ON \(sql.matches) FOR UPDATE OF t"
  }

  /// Returns a row if a write to one of the keys is captured.
  var isWritten: String {
    // Of others: a step may capture the delete of a row before it comes to the row itself.
    let written = { (condition: String) in
      """
      SELECT FROM \(MirrorSQL.ledger).captured t JOIN \(sql.source(keysOnly: true))
      ON t.mirror = \(sql.mirror) AND t.tab = \(sql.literal)
        AND \(condition) = \(sql.keyParameters) AND t.xid <> pg_current_xact_id()
      """
    }
    // An unrecorded write may be a write to these rows.
    let stop = "SELECT FROM \(MirrorSQL.ledger).stops WHERE mirror = \(sql.mirror)"
    return "\(written("t.key")) UNION ALL \(written("t.kind = 'K' AND t.olds"))"
      + " UNION ALL \(stop) LIMIT 1"
  }

  // MARK: Writing

  var delete: String {
    "DELETE FROM \(sql.target) t USING \(sql.source(keysOnly: true)) WHERE \(sql.matches)"
      + isShared(sql.keyParameters)
  }

  /// Returns the condition of rows that the space may change or delete. Rows different in the
  /// space, and rows that do not travel, are the company's alone.
  private func isShared(_ key: String) -> String {
    " AND NOT \(sql.isUnsent(key))" + (sql.holds("t").map { " AND \($0)" } ?? "")
  }

  /// Changes existing rows. Triggers and defaults of an insert do not concern them.
  var update: String? {
    let columns = table.updatable
    guard !columns.isEmpty else { return nil }
    let sets = columns.map { "\(quoted($0.name)) = x.\(quoted($0.name))" }
    let typed = zip(table.all, sql.values).map { column, value in
      "\(value) AS \(quoted(column.name))"
    }
    let on = table.key.map { "t.\(quoted($0.name)) = x.\(quoted($0.name))" }
    return """
      UPDATE \(sql.target) t SET \(sets.joined(separator: ", "))
      FROM (SELECT \(typed.joined(separator: ", ")) FROM \(sql.source(keysOnly: false))) x
      WHERE \(on.joined(separator: " AND ")) AND \(sql.differs("t", "x", in: columns))\(
        isShared(sql.keyText("t.")))
      """
  }

  /// Adds missing rows; `nil` if the role may add none. An existing row with ON CONFLICT alone would
  /// fail if a column is required here, and unknown to the space.
  var insert: String? {
    if table.limits.missing.contains(.insert) { return nil }
    let (insertable, all) = (table.insertable, sql.values)
    let defaults = table.adoption?.defaults ?? [:]
    var names = insertable.map { quoted($0.column.name) }
    var values = insertable.map { place, column in
      // A device without the column has no value for it.
      defaults[column.name.text].map { "coalesce(\(all[place]), (\($0)))" } ?? all[place]
    }
    if let space = table.adoption?.space, table.column(Name(space.name)) == nil {
      names.append(quoted(Name(space.name)))
      values.append(quoted(postgres: space.value))
    }
    // A conflict of a number is one of two records: the step begins again.
    let conflict =
      table.isMapped
      ? "" : "ON CONFLICT (\(quoted(list: table.key.map(\.name)))) DO NOTHING"
    return """
      INSERT INTO \(sql.target) AS t (\(names.joined(separator: ", "))) OVERRIDING SYSTEM VALUE
      SELECT \(values.joined(separator: ", ")) FROM \(sql.source(keysOnly: false))
      WHERE NOT \(sql.isUnsent(sql.keyParameters))
        AND NOT EXISTS (SELECT FROM \(sql.target) t WHERE \(sql.matches))
      \(conflict)
      """
  }

  /// Gives one column of each unique key another value, for rows that exchange theirs; `nil` if
  /// there is nothing to vacate. Rows referenced by such a column keep it: the references could be
  /// lost.
  var vacate: String? {
    // The row could leave the condition.
    if table.adoption?.condition != nil { return nil }
    var values: [Name: String] = [:]
    for unique in table.unique where unique.allSatisfy({ values[$0] == nil }) {
      let columns = table.updatable.filter { unique.contains($0.name) }
      if let column = columns.first(where: { !$0.isRequired }) {
        values[column.name] = "NULL"
        continue
      }
      // A text may be too long for the column.
      let places = columns.sorted { $1.type == .text && $0.type != .text }.compactMap { column in
        column.type.placeholder.map { (column.name, $0) }
      }
      if let (name, value) = places.first { values[name] = value }
    }
    if values.isEmpty { return nil }
    let sets = values.sorted { $0.key < $1.key }.map { "\(quoted($0)) = \($1)" }
    return """
      UPDATE \(sql.target) t SET \(sets.joined(separator: ", "))
      FROM \(sql.source(keysOnly: true)) WHERE \(sql.matches) AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_attribute a
          ON a.attrelid = k.confrelid AND a.attnum = ANY(k.confkey)
        WHERE k.contype = 'f' AND k.confrelid = \(quoted(postgres: sql.target))::regclass
          AND a.attname = ANY(\(sql.list(values.keys.map { quoted(postgres: $0.text) }))))
      \(isShared(sql.keyParameters))
      """
  }

  // MARK: The capture

  /// Names the table of the step's next statement. A delete of a parent may change rows of the same
  /// table as well. So all rows are captured, and ``forget`` removes those of the step.
  func begin(isDelete: Bool) -> String {
    if let open { return open }
    let relation = "\(quoted(postgres: sql.target))::regclass"
    let own = "\(relation)::oid::text"
    guard isDelete else { return "SELECT set_config('ferry.table', \(own), true)" }
    return """
      SELECT set_config('ferry.table', CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_constraint
        WHERE contype = 'f' AND confrelid = \(relation) AND confdeltype IN ('c', 'n', 'd'))
        THEN '' ELSE \(own) END, true)
      """
  }

  /// The rows of the parameters that the space has.
  private var sent: String {
    "\(sql.source(keysOnly: true)) WHERE NOT \(sql.isUnsent(sql.keyParameters))"
  }

  /// Removes rows that the step overwrites from the capture of the step: effects of former
  /// statements have changed them. See ``OverwriteSQL``.
  var forgetOverwritten: String {
    if isLogged { return "SELECT \(markKeys("over")) FROM \(sent) HAVING count(*) > 0" }
    return OverwriteSQL(sql: sql).forget(
      "SELECT \(sql.keyParameters) AS key FROM \(sent)", in: "pg_current_xact_id()")
  }

  /// Removes deleted rows from the capture of the step.
  var forget: String {
    if isLogged { return "SELECT \(markKeys("gone")) FROM \(sent) HAVING count(*) > 0" }
    return """
      DELETE FROM \(MirrorSQL.ledger).captured c USING \(sent)
        AND c.xid = pg_current_xact_id() AND c.mirror = \(sql.mirror)
        AND c.tab = \(sql.literal) AND c.key = \(sql.keyParameters)
      """
  }

  /// A mark with the keys of the parameters, an aggregate.
  private func markKeys(_ word: String) -> String {
    let keys = table.key.indices.map { "x.k\($0)" }.joined(separator: ", ")
    return mark(word, sql.function, "", rest: " || json_agg(json_build_array(\(keys)))::text")
  }

  private func mark(_ words: String..., rest: String = "") -> String {
    LogMark.sql(sql.mirror, words, rest: rest)
  }

  /// Marks the beginning of a statement of a step; `nil` without a capture from the log.
  var open: String? {
    isLogged ? "SELECT \(mark("open", sql.function)) WHERE NOT \(hasBefore)" : nil
  }

  /// The SQL of whether triggers before the rows of a statement may change other rows of the table.
  /// Then keys name the step's rows.
  private var hasBefore: String {
    let relation = "\(quoted(postgres: sql.target))::regclass"
    return """
      EXISTS (SELECT FROM pg_catalog.pg_trigger g
        WHERE NOT g.tgisinternal AND g.tgtype & 2 = 2 AND g.tgenabled <> 'D' AND g.tgrelid IN (
          SELECT \(relation)::oid UNION ALL SELECT p.relid::oid FROM pg_partition_tree(\(relation)) p))
      """
  }

  /// Returns a capture of whole rows with a mark for the log. The mark has the keys: the log's reader
  /// may come before the capture is visible.
  func made(_ capture: String) -> String {
    guard isLogged else { return capture }
    let rest = " || (json_agg(array_to_json(key)) FILTER (WHERE kind = 'A'))::text"
    return """
      WITH a AS (\(capture))
      SELECT m FROM (SELECT count(*) AS n, \(mark("made", sql.function, "", rest: rest)) AS m FROM a) c
      WHERE n > 0
      """
  }

  /// Returns a statement of a step with a mark behind the changed rows. The effects of most triggers
  /// follow: they run at the end of the statement. It returns a row if it changes any.
  ///
  /// - Parameter statement: it names the table `t`.
  func own(_ statement: String) -> String {
    guard isLogged else { return statement }
    let keys = table.key.map { "t.\(quoted($0.name))" }.joined(separator: ", ")
    // Effects of former statements to the other rows stay.
    let gone = """
      SELECT \(markKeys("gone")) FROM \(sql.source(keysOnly: true))
      WHERE EXISTS (SELECT FROM w t WHERE \(sql.matches)) HAVING count(*) > 0
      """
    // The last condition makes PostgreSQL write the mark in any case.
    return """
      WITH w AS (\(statement) RETURNING \(keys))
      SELECT FROM (SELECT count(*) AS n,
        CASE WHEN \(hasBefore) THEN (\(gone)) ELSE \(mark("close")) END AS m FROM w) c
      WHERE CASE WHEN m IS NULL THEN n ELSE n END > 0
      """
  }

  // MARK: Rows missing on a side

  /// Forgets deleted rows of `unsent` that the space has deleted, too.
  var forgetGone: String {
    """
    DELETE FROM \(MirrorSQL.ledger).unsent u USING \(sql.source(keysOnly: true))
    WHERE u.mirror = \(sql.mirror) AND u.tab = \(sql.literal) AND u.gone
      AND u.key = \(sql.keyParameters)
    """
  }

  /// Removes the rows of the parameters from the deferred ones.
  var resolve: String {
    """
    DELETE FROM \(MirrorSQL.ledger).deferred d USING \(sql.source(keysOnly: true))
    WHERE d.mirror = \(sql.mirror) AND d.tab = \(sql.literal) AND d.retry
      AND d.key = \(sql.keyParameters)
    """
  }

  /// Makes rows of `unsent` due for a retry if they wait for the records of the parameters.
  var freeHeld: String {
    """
    UPDATE \(MirrorSQL.ledger).unsent u SET retry = true FROM \(sql.source(keysOnly: true))
    WHERE u.mirror = \(sql.mirror) AND u.tab = \(sql.literal)
      AND u.holder = \(sql.keyParameters) AND NOT u.retry
    """
  }
}

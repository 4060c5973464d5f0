import FerryProtocol

/// SQL of a copy, and of the comparison with its view.
///
/// A copy has the types of devices, whatever those of the view are. So a rounded value never differs
/// from itself, and the copy keeps no type of the company from being dropped.
struct ViewSQL {
  let sql: MirrorSQL

  private var table: MirrorTable { sql.table }
  private var keys: String { quoted(list: table.key.map(\.name)) }
  private var all: String { quoted(list: table.all.map(\.name)) }

  /// The statement to make the empty copy. It reads no row: programs wait for its transaction.
  var makeCopy: String {
    let columns = table.all.map { column in
      let collation = column.type == .text ? " COLLATE \"C\"" : ""
      return "\(quoted(column.name)) \(column.type.rawValue)\(collation)"
    }
    return "CREATE TABLE IF NOT EXISTS \(sql.target) "
      + "(\(columns.joined(separator: ", ")), PRIMARY KEY (\(keys)))"
  }

  /// Locks the definitions of the view, and of all tables below it, until the end of the transaction.
  /// It computes no row.
  func lock(_ view: String) -> String { "SELECT FROM \(view) t LIMIT 0" }

  /// The statement to give the copy the rows of the view. It sees one state of the database. Rows
  /// with an ambiguous key are left out, and rows that no device can hold. Returns:
  ///
  /// - the number of changed rows, and of all rows of the copy;
  /// - the number of ambiguous keys, the first one and the number of its rows;
  /// - the number of unfit rows, the unfit part of the first one and the beginning of its key.
  ///
  /// - Parameters:
  ///   - view: the view's rows for a FROM clause.
  ///   - found: the view, as it is now.
  /// - Throws: ``MirrorFault`` if a column has another type on devices.
  func refresh(_ view: String, _ found: CompanyTable) throws(MirrorFault) -> String {
    var values: [String] = []
    for column in table.all { values.append(try value(of: column, found)) }
    values.append("CASE \(faults(values, found).joined(separator: " ")) END")
    let (keys, fault) = (keys, fault)
    let places = table.key.indices.map { "k\($0)" }.joined(separator: ", ")
    let on = table.key.map { "v.\(quoted($0.name)) = t.\(quoted($0.name))" }
      .joined(separator: " AND ")
    let isAmbiguous = zip(table.key, 0...).map { "d.k\($1) = r.\(quoted($0.name))" }
    let isWhole = table.key.map { "r.\(quoted($0.name)) IS NOT NULL" } + ["r.\(fault) IS NULL"]
    let isNull = table.key.map { "\(quoted($0.name)) IS NULL" }.joined(separator: " OR ")
    let sets = table.columns.map { "\(quoted($0.name)) = excluded.\(quoted($0.name))" }
    let action = sets.isEmpty ? "NOTHING" : "UPDATE SET \(sets.joined(separator: ", "))"
    let rows = table.all.map { "r.\(quoted($0.name))" }.joined(separator: ", ")
    return """
      WITH r(\(all), \(fault)) AS MATERIALIZED (
          SELECT \(values.joined(separator: ", ")) FROM \(view) AS t),
        d(\(places), n) AS MATERIALIZED (SELECT \(keys), count(*) FROM r WHERE \(fault) IS NULL
          GROUP BY \(keys) HAVING count(*) > 1 OR \(isNull)),
        v AS MATERIALIZED (SELECT \(rows) FROM r WHERE \(isWhole.joined(separator: " AND "))
          AND NOT EXISTS (SELECT FROM d WHERE \(isAmbiguous.joined(separator: " AND ")))),
        gone AS (DELETE FROM \(sql.target) t WHERE NOT EXISTS (SELECT FROM v WHERE \(on)) RETURNING 1),
        changed AS (INSERT INTO \(sql.target)(\(all))
          SELECT v.* FROM v LEFT JOIN \(sql.target) t ON \(on)
          WHERE t.\(quoted(table.key[0].name)) IS NULL OR \(sql.differs("v", "t"))
          ON CONFLICT (\(keys)) DO \(action) RETURNING 1)
      SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM changed), (SELECT count(*) FROM v),
        (SELECT count(*) FROM d), f.key, coalesce(f.n, 0), coalesce(u.n, 0), u.fault, u.key
      FROM (SELECT 1) one LEFT JOIN (
        SELECT \(sql.list(table.key.indices.map { "k\($0)::text" })) AS key, n
        FROM d ORDER BY \(places) LIMIT 1) f ON true
      LEFT JOIN (SELECT \(sql.list(table.key.map { "left(\(quoted($0.name))::text, 40)" })) AS key,
        \(fault) AS fault, count(*) OVER () AS n FROM r WHERE \(fault) IS NOT NULL
        ORDER BY \(keys) LIMIT 1) u ON true
      """
  }

  /// The column of a row's unfit part. No column of the view has the name.
  private var fault: String {
    var name = "ferry_fault"
    while table.all.contains(where: { $0.name == Name(name) }) { name += "_" }
    return quoted(Name(name))
  }

  /// Returns cases of a row that no device can hold, with the part to name. Triggers of the copy find
  /// all others: the copy has texts of times, and no index has room for a long key.
  private func faults(_ values: [String], _ found: CompanyTable) -> [String] {
    let sizes = sql.keySizes(values.prefix(table.key.count).map { "(\($0))" })
    var cases = ["WHEN \(sizes.joined(separator: " + ")) > \(sql.keyBytesMax) THEN 'the key'"]
    for (place, column) in table.all.enumerated() where column.affinity == .text {
      guard let type = found.column(column.name.text)?.mirrored?.type else { continue }
      var shown = column
      shown.type = type
      let (value, isKey) = ("t.\(quoted(column.name))", place < table.key.count)
      guard let condition = isKey ? shown.keyFault(value) : shown.fault(value) else { continue }
      let part = isKey ? "the key" : "column \(column.name)"
      cases.append("WHEN \(condition) THEN \(quoted(postgres: part))")
    }
    return cases
  }

  /// Returns the SQL of a value as the copy has it.
  private func value(
    of column: MirrorColumn, _ found: CompanyTable
  ) throws(MirrorFault) -> String {
    let named = "column \(column.name)"
    guard let present = found.column(column.name.text) else {
      throw MirrorFault(description: "\(named) is gone")
    }
    guard let type = present.mirrored, type.affinity == column.affinity else {
      throw MirrorFault(
        description: "\(named) is \(column.affinity.rawValue) on devices, and its new type "
          + "\(present.shownType) is not; cast it in the view")
    }
    let value = "t.\(quoted(column.name))"
    switch (type.affinity, type.type) {
    case (.text, _): return "(\(type.type.keyEncoded(value))) COLLATE \"C\""
    case (_, .boolean): return "\(value)::integer::bigint"
    // Four bytes have the same number in other bits.
    case (_, .double): return "\(value)::text::double precision"
    default: return "\(value)::\(column.type.rawValue)"
    }
  }

  /// A query for a text that changes with the rows of the tables that the transaction has locked, as
  /// PostgreSQL's statistics count writes.
  static let state = """
    SELECT coalesce(md5(string_agg(concat_ws(' ', c.oid, pg_relation_filenode(c.oid),
        pg_stat_get_tuples_inserted(c.oid), pg_stat_get_tuples_updated(c.oid),
        pg_stat_get_tuples_deleted(c.oid),
        (SELECT string_agg(w.xmin::text, ' ' ORDER BY w.oid) FROM pg_catalog.pg_rewrite w
          WHERE w.ev_class = c.oid)), ',' ORDER BY c.oid)), '')
    FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'
      AND c.relnamespace <> 'pg_catalog'::regnamespace
      AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    """
}

extension MirrorSQL {
  /// The rows that the mirror only reads, for a FROM clause; `nil` for a table with triggers.
  var view: String? {
    guard let view = table.adoption?.view else { return nil }
    return view.query.map(ViewSource.relation) ?? "\(quoted(Name(schema))).\(quoted(table.name))"
  }
}

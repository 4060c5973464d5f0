import FerryProtocol

/// A view of the company as a read-only table of the space, or a table that the mirror's role may only
/// read. No trigger and no log sees its changes: the mirror compares a copy of the rows with it. Triggers
/// of the copy capture the differences, as those of a program.
package struct ViewSource: Codable, Sendable, Equatable {
  /// The columns that identify a row; empty for the primary key of a table.
  package var key: [String]

  package init(key: [String]) { self.key = key }
}

extension CompanyTable {
  /// Shows a view as the copy with its rows.
  ///
  /// - Throws: ``MirrorFault`` if the key is unknown.
  mutating func show(_ view: ViewSource) throws(MirrorFault) {
    if !view.key.isEmpty { key = view.key }
    guard !key.isEmpty else {
      throw MirrorFault(
        description: "view \(name) has no primary key: name the columns that identify a row with "
          + "--view-key \(name)=COLUMN,…")
    }
    if let absent = key.first(where: { column($0) == nil }) {
      throw MirrorFault(description: "view \(name) has no column \(absent)")
    }
    var copy = CompanyTable(name: name, kind: "r")
    (copy.isView, copy.key) = (true, key)
    copy.columns = columns.map { column in
      var column = column
      (column.isRequired, column.isGenerated, column.identity) = (false, false, "")
      (column.defaultSQL, column.qualifiedDefault) = (nil, nil)
      (column.isUpdatable, column.isInsertable) = (false, false)
      return column
    }
    copy.requiredRights = ["SELECT"]
    copy.missingRights =
      missingRights.filter(copy.requiredRights.contains)
      + WriteLimits.Right.allCases.map(\.rawValue)
    self = copy
  }
}

extension MirrorSQL {
  /// The view of a copy; `nil` for a table with the rows itself.
  var view: String? {
    table.adoption?.view == nil ? nil : "\(quoted(Name(schema))).\(quoted(table.name))"
  }

  private func columns(_ row: String) -> String {
    table.all.map { row + quoted($0.name) }.joined(separator: ", ")
  }

  /// The statements to make the copy of a view, with the present rows; they may run again.
  var makeCopy: [String] {
    guard let view else { return [] }
    let keys = quoted(list: table.key.map(\.name))
    let name = name("key", table.key.map(\.name))
    return [
      "CREATE TABLE IF NOT EXISTS \(target) AS SELECT \(columns("")) FROM \(view)",
      unlessPresent(
        name, in: "pg_constraint", prefix: "con",
        "ALTER TABLE \(target) ADD CONSTRAINT \(name) PRIMARY KEY (\(keys))"),
    ]
  }

  /// The statement to give the copy the rows of the view. It sees one state of the database, and
  /// returns the number of changed rows. `nil` without a view.
  var refresh: String? {
    guard let view else { return nil }
    let on = table.key.map { "c.\(quoted($0.name)) = v.\(quoted($0.name))" }
      .joined(separator: " AND ")
    let first = "c.\(quoted(table.key[0].name))"
    let sets = table.columns.map { "\(quoted($0.name)) = excluded.\(quoted($0.name))" }
    let action = sets.isEmpty ? "NOTHING" : "UPDATE SET \(sets.joined(separator: ", "))"
    return """
      WITH v AS MATERIALIZED (SELECT \(columns("")) FROM \(view)),
        gone AS (DELETE FROM \(target) c WHERE NOT EXISTS (SELECT FROM v WHERE \(on)) RETURNING 1),
        changed AS (
          INSERT INTO \(target)(\(columns("")))
          SELECT \(columns("v.")) FROM v LEFT JOIN \(target) c ON \(on)
          WHERE \(first) IS NULL OR \(differs("c", "v"))
          ON CONFLICT (\(quoted(list: table.key.map(\.name)))) DO \(action) RETURNING 1)
      SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM changed)
      """
  }

  /// A query for a text that changes with the rows of the tables below a view, as PostgreSQL's
  /// statistics count writes. The parameter is the view.
  static let viewState = """
    WITH RECURSIVE r(oid) AS (
      SELECT to_regclass($1)::oid
      UNION SELECT n.oid FROM r CROSS JOIN LATERAL (
        SELECT d.refobjid AS oid FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_depend d
          ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = w.oid
            AND d.refclassid = 'pg_catalog.pg_class'::regclass
        WHERE w.ev_class = r.oid
        UNION ALL SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = r.oid) n)
    SELECT coalesce(md5(string_agg(concat_ws(' ', c.oid, pg_relation_filenode(c.oid),
        pg_stat_get_tuples_inserted(c.oid), pg_stat_get_tuples_updated(c.oid),
        pg_stat_get_tuples_deleted(c.oid),
        (SELECT string_agg(w.xmin::text, ' ' ORDER BY w.oid) FROM pg_catalog.pg_rewrite w
          WHERE w.ev_class = c.oid)), ',' ORDER BY c.oid)), '')
    FROM r JOIN pg_catalog.pg_class c ON c.oid = r.oid
    """
}

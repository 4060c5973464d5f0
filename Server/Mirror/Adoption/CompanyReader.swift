import FerryPostgres
import FerryProtocol

/// Reads the description of tables from the catalog of PostgreSQL. All calls block.
struct CompanyReader {
  let connection: PostgresConnection
  let schema: String

  /// - Throws: ``MirrorFault`` if there is no such table.
  func table(_ name: String) throws -> CompanyTable {
    let found = try connection.query(
      .once(
        """
        SELECT c.oid::bigint, c.relkind::text,
          NOT c.relispartition AND c.relkind <> 'p'
            AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid OR inhrelid = c.oid),
          ARRAY(SELECT r FROM unnest('{SELECT,INSERT,UPDATE,DELETE,TRIGGER}'::text[]) r
            WHERE NOT CASE WHEN r IN ('INSERT', 'UPDATE') THEN has_any_column_privilege(c.oid, r)
              ELSE has_table_privilege(c.oid, r) END),
          CASE WHEN row_security_active(c.oid) THEN quote_ident(current_user) END,
          CASE WHEN c.relispartition THEN pg_partition_root(c.oid)::text END,
          (SELECT CASE WHEN p.relkind = 'f' THEN p.oid::regclass || ' is a foreign table'
              ELSE 'the user of the database lacks TRIGGER or SELECT on ' || p.oid::regclass END
            FROM pg_partition_tree(c.oid) t JOIN pg_class p ON p.oid = t.relid
            WHERE c.relkind = 'p' AND (p.relkind = 'f' OR NOT has_table_privilege(p.oid, 'TRIGGER')
              OR NOT has_table_privilege(p.oid, 'SELECT')) LIMIT 1)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = $2
        """), [.text(schema), .text(name)])
    guard let row = found.first else {
      throw MirrorFault(description: "the database has no table \(schema).\(name)")
    }
    if let role = try row.ifPresent(4, as: String.self) {
      throw MirrorFault(
        description: "row-level security of table \(schema).\(name) hides rows from role \(role), "
          + "and they would count as deleted; run ALTER ROLE \(role) BYPASSRLS as an "
          + "administrator, or use another role")
    }
    let oid = try row.int8(0)
    var table = CompanyTable(name: name, kind: try row.text(1), isDivided: try row.bool(2))
    table.parent = try row.ifPresent(5, as: String.self)
    table.partitionFault = try row.ifPresent(6, as: String.self)
    table.missingRights = try row.array(3, of: String.self).compactMap(\.self)
    table.columns = try columns(oid)
    try qualifyDefaults(oid, of: &table)
    try addConstraints(oid, to: &table)
    table.sequence = try KeySequence.of("\(quoted(Name(schema))).\(quoted(Name(name)))", connection)
    return table
  }

  /// Returns the name of a space as PostgreSQL writes the value.
  ///
  /// - Throws: ``MirrorFault`` if it is no value of the column.
  func canonical(_ space: SpaceColumn, of table: CompanyTable) throws -> SpaceColumn {
    guard let column = table.column(space.name), column.canNameSpace else { return space }
    try connection.execute("SAVEPOINT ferry_value")
    do {
      let value = try text(space.value, of: column)
      try connection.execute("RELEASE SAVEPOINT ferry_value")
      return SpaceColumn(space.name, value: value)
    } catch let error as PostgresError where error.isAboutRow {
      // Other tables may have faults as well.
      try connection.execute("ROLLBACK TO SAVEPOINT ferry_value; RELEASE SAVEPOINT ferry_value")
      throw MirrorFault(
        description: "column \(space.name) of table \(table.name) cannot have the value "
          + "\(space.value): \(error.message)")
    }
  }

  private func text(_ value: String, of column: CompanyColumn) throws -> String {
    let sql = "SELECT (\(quoted(postgres: value))::\(column.shownType))::text"
    return try connection.query(.once(sql)).first?.text(0) ?? value
  }

  private func columns(_ oid: Int64) throws -> [CompanyColumn] {
    try columns(Self.ownColumns, [.int8(oid)])
  }

  /// - Parameter own: SQL for the columns' names, types and other parts, as `pg_attribute` has them.
  func columns(_ own: String, _ parameters: PostgresParameters) throws -> [CompanyColumn] {
    try connection.query(.once("WITH RECURSIVE own AS (\(own)),\(Self.columns)"), parameters).map {
      row in
      let (schema, name) = (try row.text(8), try row.text(9))
      let origin = CompanyType(
        schema: schema, name: name, parts: try row.array(12, of: String.self).compactMap(\.self),
        kind: try row.text(10), element: try row.ifPresent(11, as: String.self))
      return CompanyColumn(
        name: try row.text(0), type: try row.ifPresent(1, as: String.self), origin: origin,
        shownType: try row.text(2), precision: try row.ifPresent(3, as: Int64.self).map(Int.init),
        isRequired: try row.bool(4), defaultSQL: try row.ifPresent(5, as: String.self),
        isGenerated: try row.bool(6), identity: try row.text(7), isUpdatable: try row.bool(13),
        isInsertable: try row.bool(14))
    }
  }

  /// Reads the defaults of required columns, as they mean the same with any `search_path`.
  private func qualifyDefaults(_ oid: Int64, of table: inout CompanyTable) throws {
    guard table.columns.contains(where: { $0.isRequired && $0.defaultSQL != nil }) else { return }
    let former = try connection.query(
      .once("SELECT current_setting('search_path'), set_config('search_path', '', true)"))
    let rows = try connection.query(
      .once(
        """
        SELECT a.attname::text, pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attribute a
          JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = $1::oid AND a.attgenerated = ''
        """), [.int8(oid)])
    for row in rows {
      let name = Name(try row.text(0))
      guard let place = table.columns.firstIndex(where: { Name($0.name) == name }) else { continue }
      table.columns[place].qualifiedDefault = try row.text(1)
    }
    _ = try connection.query(
      .once("SELECT set_config('search_path', $1, true)"), [.text(try former.first?.text(0))])
  }

  private static let ownColumns = """
    SELECT a.*, pg_get_expr(d.adbin, d.adrelid) AS fallback FROM pg_attribute a
      LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped
    """

  /// Follows domains to their base, and types to their parts.
  private static let columns = """

      domains(type, base, modifier, required, fallback, depth) AS (
        SELECT DISTINCT atttypid, atttypid, -1, false, NULL::text, 0 FROM own
        UNION ALL SELECT d.type, t.typbasetype, t.typtypmod, d.required OR t.typnotnull,
          coalesce(d.fallback, t.typdefault COLLATE "default"), d.depth + 1
        FROM domains d JOIN pg_type t ON t.oid = d.base AND t.typtype = 'd'),
      bases AS (SELECT DISTINCT ON (type) * FROM domains ORDER BY type, depth DESC),
      parts(base, type, outer_type) AS (
        SELECT DISTINCT base, base, 0::oid FROM bases
        UNION SELECT p.base, n.type, t.oid FROM parts p JOIN pg_type t ON t.oid = p.type
          CROSS JOIN LATERAL (
            SELECT t.typbasetype WHERE t.typtype = 'd'
            UNION ALL SELECT e.oid FROM pg_type e WHERE e.typarray = t.oid
            UNION ALL SELECT r.rngsubtype FROM pg_range r
              WHERE t.oid::text IN (r.rngtypid::text, to_jsonb(r) ->> 'rngmultitypid')
            UNION ALL SELECT f.atttypid FROM pg_attribute f
              WHERE f.attrelid = t.typrelid AND f.attnum > 0 AND NOT f.attisdropped) n(type)),
      names AS (
        SELECT p.base, p.type, p.outer_type, CASE WHEN t.typtype = 'e' THEN 'enum'
          WHEN n.nspname = 'pg_catalog' THEN t.typname::text ELSE '.' || t.typname END AS name,
          NOT EXISTS (SELECT FROM parts i WHERE i.base = p.base AND i.outer_type = p.type) AS is_last
        FROM parts p JOIN pg_type t ON t.oid = p.type JOIN pg_namespace n ON n.oid = t.typnamespace)
    SELECT a.attname::text, CASE WHEN n.nspname = 'pg_catalog' THEN t.typname::text END,
      format_type(a.atttypid, a.atttypmod),
      CASE WHEN t.typname = 'numeric' AND m.modifier > 3
        THEN ((m.modifier - 4) >> 16 & 65535)::bigint END,
      a.attnotnull OR b.required, coalesce(a.fallback, b.fallback), a.attgenerated <> '',
      a.attidentity::text, n.nspname::text, t.typname::text, t.typtype::text,
      (SELECT i.name FROM pg_type e JOIN names i ON i.base = b.base AND i.type = e.oid
        WHERE e.typarray = b.base LIMIT 1),
      ARRAY(SELECT DISTINCT p.name FROM names p WHERE p.base = b.base AND p.is_last ORDER BY 1),
      coalesce(has_column_privilege(a.attrelid, a.attnum, 'UPDATE'), false),
      coalesce(has_column_privilege(a.attrelid, a.attnum, 'INSERT'), false)
    FROM own a JOIN bases b ON b.type = a.atttypid JOIN pg_type t ON t.oid = b.base
      JOIN pg_namespace n ON n.oid = t.typnamespace
      CROSS JOIN LATERAL (
        SELECT CASE WHEN b.depth = 0 THEN a.atttypmod ELSE b.modifier END AS modifier) m
    ORDER BY a.attnum
    """

  private func addConstraints(_ oid: Int64, to table: inout CompanyTable) throws {
    let rows = try connection.query(
      .once(
        """
        SELECT c.contype::text, c.condeferrable, c.convalidated,
          CASE WHEN n.nspname = $2 THEN p.relname::text END, c.confdeltype::text, c.confupdtype::text,
          ARRAY(SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY k(num, place)
            JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.num ORDER BY k.place),
          ARRAY(SELECT a.attname::text FROM unnest(c.confkey) WITH ORDINALITY k(num, place)
            JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.num ORDER BY k.place)
        FROM pg_constraint c LEFT JOIN pg_class p ON p.oid = c.confrelid
          LEFT JOIN pg_namespace n ON n.oid = p.relnamespace
        WHERE c.conrelid = $1::oid AND c.contype IN ('p', 'u', 'f') ORDER BY c.conname
        """), [.int8(oid), .text(schema)])
    for row in rows {
      let columns = try row.array(6, of: String.self).compactMap(\.self)
      switch try row.text(0) {
      case "p": (table.key, table.isKeyDeferrable) = (columns, try row.bool(1))
      case "u": table.unique.append(columns)
      default:
        table.references.append(
          CompanyReference(
            columns: columns, table: try row.ifPresent(3, as: String.self),
            to: try row.array(7, of: String.self).compactMap(\.self), onDelete: try row.text(4),
            onUpdate: try row.text(5), isValid: try row.bool(2)))
      }
    }
  }
}

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
          c.relispartition OR EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid OR inhrelid = c.oid),
          ARRAY(SELECT r FROM unnest('{SELECT,INSERT,UPDATE,DELETE,TRIGGER}'::text[]) r
            WHERE NOT has_table_privilege(c.oid, r)),
          CASE WHEN row_security_active(c.oid) THEN quote_ident(current_user) END
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
    table.missingRights = try row.array(3, of: String.self).compactMap(\.self)
    table.columns = try columns(oid)
    try addConstraints(oid, to: &table)
    return table
  }

  /// Returns the name of a space as PostgreSQL writes the value.
  ///
  /// - Throws: ``MirrorFault`` if it is no value of the column.
  func canonical(_ space: SpaceColumn, of table: CompanyTable) throws -> SpaceColumn {
    guard let column = table.column(space.name), column.keyType != nil else { return space }
    do {
      return SpaceColumn(space.name, value: try text(space.value, of: column))
    } catch let error as PostgresError where error.isAboutRow {
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
    try connection.query(
      .once(
        """
        SELECT a.attname::text, CASE WHEN n.nspname = 'pg_catalog' THEN t.typname::text END,
          format_type(a.atttypid, a.atttypmod),
          CASE WHEN t.typname = 'numeric' AND a.atttypmod > 3
            THEN ((a.atttypmod - 4) >> 16 & 65535)::bigint END,
          a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attgenerated <> '', a.attidentity::text
        FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
          JOIN pg_namespace n ON n.oid = t.typnamespace
          LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
        """), [.int8(oid)]
    ).map { row in
      CompanyColumn(
        name: try row.text(0), type: try row.ifPresent(1, as: String.self),
        shownType: try row.text(2), precision: try row.ifPresent(3, as: Int64.self).map(Int.init),
        isRequired: try row.bool(4), defaultSQL: try row.ifPresent(5, as: String.self),
        isGenerated: try row.bool(6), identity: try row.text(7))
    }
  }

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

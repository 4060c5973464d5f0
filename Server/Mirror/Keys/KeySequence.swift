import FerryPostgres
import FerryProtocol

/// The sequence that counts the keys of a table.
struct KeySequence: Sendable, Equatable {
  /// The name of the key's column.
  var column: Name
  /// The sequence, as SQL.
  var name: String
  /// False if the mirror's role cannot use it.
  var isUsable: Bool

  /// Returns the sequence of a table whose key is one column with a default from it; `nil` for any
  /// other table.
  ///
  /// - Parameter table: the name as SQL.
  static func of(
    _ table: String, _ connection: PostgresConnection
  ) throws -> KeySequence? {
    try connection.query(
      .once(
        """
        SELECT a.attname::text, s.oid::regclass::text, has_sequence_privilege(s.oid, 'USAGE')
        FROM pg_catalog.pg_index i
          JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
          LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
          CROSS JOIN LATERAL (
            SELECT p.objid AS oid FROM pg_catalog.pg_depend p
            WHERE p.refclassid = 'pg_catalog.pg_class'::regclass AND p.refobjid = a.attrelid
              AND p.refobjsubid = a.attnum AND p.classid = 'pg_catalog.pg_class'::regclass
              AND p.deptype = 'i' AND a.attidentity <> ''
            UNION ALL
            SELECT p.refobjid FROM pg_catalog.pg_depend p
            WHERE p.classid = 'pg_catalog.pg_attrdef'::regclass AND p.objid = d.oid
              AND p.refclassid = 'pg_catalog.pg_class'::regclass) s
          JOIN pg_catalog.pg_class c ON c.oid = s.oid AND c.relkind = 'S'
        WHERE i.indrelid = to_regclass($1) AND i.indisprimary AND i.indnkeyatts = 1 LIMIT 1
        """), [.text(table)]
    ).first.map {
      KeySequence(column: Name(try $0.text(0)), name: try $0.text(1), isUsable: try $0.bool(2))
    }
  }
}

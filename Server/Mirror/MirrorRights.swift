import FerryPostgres
import FerryProtocol

/// The rights of a role on a database and the schemas of a mirror; pure.
struct MirrorRights: Sendable {
  /// Quoted for SQL.
  var role: String
  /// Quoted for SQL.
  var database: String
  /// True if the role may make schemas.
  var makesSchemas: Bool
  /// The schema with the tables.
  var schema: String
  /// The rights on the schema; `nil` if it is missing.
  var rights: (uses: Bool, creates: Bool)?
  /// The rights on the schema of all mirrors; `nil` if it is missing.
  var ledger: (uses: Bool, creates: Bool, writes: Bool)?

  /// Returns the reasons against a mirror.
  ///
  /// - Parameter makesTables: whether the mirror makes its tables.
  func faults(makesTables: Bool) -> [MirrorFault] {
    var texts: [String] = []
    if let rights {
      if !rights.uses { texts.append("role \(role) lacks USAGE on schema \(schema)") }
      if makesTables, !rights.creates {
        texts.append("role \(role) lacks CREATE on schema \(schema)")
      }
    } else if makesTables, !makesSchemas {
      texts.append(
        "role \(role) may not make schema \(schema): run CREATE SCHEMA \(quoted(Name(schema))) "
          + "AUTHORIZATION \(role)")
    }
    if let ledger {
      if !ledger.uses || !ledger.creates || !ledger.writes {
        texts.append(
          "role \(role) lacks rights on schema ferry_mirror: the mirrors of one database use one "
            + "role")
      }
    } else if !makesSchemas {
      texts.append(
        "role \(role) may not make schema ferry_mirror: run CREATE SCHEMA ferry_mirror "
          + "AUTHORIZATION \(role), or GRANT CREATE ON DATABASE \(database) TO \(role)")
    }
    return texts.map { MirrorFault(description: $0) }
  }
}

extension MirrorRights {
  /// Reads the rights of the connection's role.
  init(_ schema: String, _ connection: PostgresConnection) throws {
    let rows = try connection.query(
      .once(
        """
        SELECT quote_ident(current_user), quote_ident(current_database()),
          has_database_privilege(current_database(), 'CREATE'),
          has_schema_privilege(s.oid, 'USAGE'), has_schema_privilege(s.oid, 'CREATE'),
          has_schema_privilege(m.oid, 'USAGE'), has_schema_privilege(m.oid, 'CREATE'),
          (SELECT coalesce(bool_and(has_table_privilege(c.oid, 'INSERT')), true)
            FROM pg_catalog.pg_class c WHERE c.relnamespace = m.oid AND c.relkind = 'r')
        FROM (SELECT 1) one
          LEFT JOIN pg_catalog.pg_namespace s ON s.nspname = $1
          LEFT JOIN pg_catalog.pg_namespace m ON m.nspname = 'ferry_mirror'
        """), [.text(schema)])
    guard let row = rows.first else {
      throw PostgresError(.unexpectedResult, "the database does not know the connection's role")
    }
    (role, database) = (try row.text(0), try row.text(1))
    (makesSchemas, self.schema) = (try row.bool(2), schema)
    if let uses = try row.ifPresent(3, as: Bool.self) { rights = (uses, try row.bool(4)) }
    if let uses = try row.ifPresent(5, as: Bool.self) {
      ledger = (uses, try row.bool(6), try row.bool(7))
    }
  }
}

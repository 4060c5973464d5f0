/// A role of PostgreSQL, and the rights beyond a database; pure.
package struct PostgresRole: Sendable, Equatable {
  package var name: String
  /// True if it is a superuser, or may become one.
  package var isSuperuser: Bool
  /// Rights on the server's files, programs and roles: present ones, and those that the role may
  /// give itself.
  package var rights: [String]

  /// Creates a role from parts.
  package init(name: String, isSuperuser: Bool = false, rights: [String] = []) {
    (self.name, self.isSuperuser, self.rights) = (name, isSuperuser, rights)
  }

  /// The reason why the role should not be used for work with data of others; `nil` for a role
  /// without such rights.
  package var warning: String? {
    if isSuperuser {
      return
        "role \(name) is a superuser, so that it may run programs on the server of the database"
    }
    if rights.isEmpty { return nil }
    return "role \(name) has rights beyond its database: \(rights.joined(separator: ", "))"
  }
}

extension PostgresConnection {
  /// Reads the role of the connection's login.
  package func role() throws -> PostgresRole {
    let rows = try query(
      .once(
        """
        SELECT r.rolname::text, EXISTS (SELECT FROM pg_catalog.pg_roles s
            WHERE s.rolsuper AND pg_catalog.pg_has_role(r.oid, s.oid, 'MEMBER')),
          ARRAY(SELECT s.rolname::text FROM pg_catalog.pg_roles s WHERE s.rolname IN
              ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')
            AND pg_catalog.pg_has_role(r.oid, s.oid, 'MEMBER') ORDER BY s.rolname)
          || CASE WHEN r.rolcreaterole THEN '{CREATEROLE}'::text[] ELSE '{}' END
        FROM pg_catalog.pg_roles r WHERE r.rolname = session_user
        """))
    guard let row = rows.first else {
      throw PostgresError(.unexpectedResult, "the database does not know the connection's role")
    }
    return PostgresRole(
      name: try row.text(0), isSuperuser: try row.bool(1),
      rights: try row.array(2, of: String.self).compactMap(\.self))
  }
}

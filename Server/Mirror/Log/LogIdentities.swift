import FerryPostgres
import FerryProtocol

/// The tables' own `REPLICA IDENTITY`, as before a mirror that reads the log. All calls block.
struct LogIdentities: Sendable, Equatable {
  /// The number of the mirror, or of a group's log.
  let mirror: Int64

  static let tables = """
    CREATE TABLE IF NOT EXISTS ferry_mirror.identities(  -- the tables' own REPLICA IDENTITY
      mirror bigint NOT NULL,
      relation oid NOT NULL,                -- a table may get another name
      target text NOT NULL,                 -- a restored table is another relation
      identity "char" NOT NULL, index_name text,
      PRIMARY KEY (mirror, relation));
    """

  /// The quoted name of the table of an entry `i`, as it is now.
  private static let present = """
    SELECT format('"%s"."%s"', replace(n.nspname, '"', '""'), replace(c.relname, '"', '""'))
        AS target
    FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relreplident = 'f' AND c.oid = coalesce(
      (SELECT p.oid FROM pg_catalog.pg_class p WHERE p.oid = i.relation), to_regclass(i.target))
    """

  /// Returns the statement to log the former rows of a table as a whole.
  func makeFull(_ target: String) -> String {
    let literal = quoted(postgres: target)
    let body = """
      BEGIN
        -- The entry of a table from a restored database.
        UPDATE ferry_mirror.identities i SET relation = c.oid FROM pg_catalog.pg_class c
        WHERE c.oid = \(literal)::regclass AND c.relreplident = 'f'
          AND i.mirror = \(mirror) AND i.target = \(literal)
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_class p WHERE p.oid = i.relation)
          AND NOT EXISTS (SELECT FROM ferry_mirror.identities o
            WHERE o.mirror = i.mirror AND o.relation = c.oid);
        INSERT INTO ferry_mirror.identities(mirror, relation, target, identity, index_name)
        SELECT \(mirror), c.oid, \(literal), c.relreplident,
          (SELECT i.relname FROM pg_catalog.pg_index x
            JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
            WHERE x.indrelid = c.oid AND x.indisreplident)
        FROM pg_catalog.pg_class c WHERE c.oid = \(literal)::regclass ON CONFLICT DO NOTHING;
        IF (SELECT relreplident FROM pg_catalog.pg_class WHERE oid = \(literal)::regclass) <> 'f' THEN
          ALTER TABLE \(target) REPLICA IDENTITY FULL;
        END IF;
      END
      """
    return "DO \(quoted(postgres: body))"
  }

  /// Returns the tables whose identity the mirror has changed, by their present names.
  func targets(_ connection: PostgresConnection) throws -> [String] {
    guard try MirrorLog(mirror, connection) != nil else { return [] }
    return try connection.query(
      .once(
        """
        SELECT DISTINCT t.target FROM ferry_mirror.identities i CROSS JOIN LATERAL (\(Self.present)) t
        WHERE i.mirror = $1
        """), [.int8(mirror)]
    ).map { try $0.text(0) }
  }

  /// Gives the tables their former identities, whatever their names are now. Another mirror of a
  /// table keeps the identity, and gives it back later. Returns tables with another one than before:
  /// the index is gone or unfit.
  func restore(_ connection: PostgresConnection) throws -> [String] {
    let rows = try connection.query(
      .once(
        """
        WITH own AS (DELETE FROM ferry_mirror.identities WHERE mirror = $1 RETURNING *),
          others AS (UPDATE ferry_mirror.identities i
            SET identity = o.identity, index_name = o.index_name FROM own o
            WHERE i.relation = o.relation AND i.mirror <> $1 AND i.identity = 'f'
            RETURNING i.relation)
        SELECT t.target, i.identity::text, i.index_name FROM own i CROSS JOIN LATERAL (\(Self.present)) t
        WHERE NOT EXISTS (SELECT FROM ferry_mirror.identities o
          WHERE o.relation = i.relation AND o.mirror <> $1)
        """), [.int8(mirror)])
    var changed: [String] = []
    for row in rows {
      let (target, index) = (try row.text(0), try row.ifPresent(2, as: String.self))
      switch (try row.text(1), index) {
      case ("d", _): try set("DEFAULT", of: target, connection)
      case ("n", _): try set("NOTHING", of: target, connection)
      case ("i", let index?):
        if try setIndex(index, of: target, connection) { continue }
        try set("DEFAULT", of: target, connection)
        changed.append(
          "table \(target): the index \(index) of its REPLICA IDENTITY is gone or unfit, so it is "
            + "the primary key now")
      default: continue
      }
    }
    return changed
  }

  private func set(
    _ identity: String, of target: String, _ connection: PostgresConnection
  ) throws {
    try connection.execute(single: "ALTER TABLE \(target) REPLICA IDENTITY \(identity)")
  }

  /// Returns `false` if a table has no such index any more, or another one of the name.
  private func setIndex(
    _ index: String, of target: String, _ connection: PostgresConnection
  ) throws -> Bool {
    try connection.execute("SAVEPOINT ferry_identity")
    do {
      try set("USING INDEX \(quoted(Name(index)))", of: target, connection)
      try connection.execute("RELEASE SAVEPOINT ferry_identity")
      return true
    } catch let error as PostgresError where error.isAboutDefinition || error.sqlState == "55000" {
      try connection.execute(
        "ROLLBACK TO SAVEPOINT ferry_identity; RELEASE SAVEPOINT ferry_identity")
      return false
    }
  }
}

import FerryPlatform
import FerryPostgres
import FerryProtocol

/// The parts of a mirror in PostgreSQL for a capture from the log: a publication of the tables, and
/// a slot, from which the server keeps the log. The mirrors of a group have one log. All calls block.
struct MirrorLog: Sendable, Equatable {
  /// The log's number: the mirror's, or the negative one of a group.
  let number: Int64
  /// The mirror's number.
  let mirror: Int64
  /// The word of the mirror's marks. Programs cannot read it, and so hide no write.
  let secret: String
  let slot: String
  /// The position behind the last stored transaction.
  var stored: PostgresLSN
  /// The identity of the log; empty before the first connection.
  var source: String
  /// The number of gaps: writes before the last one may be missing.
  var gaps: Int64
  /// The number of gaps before the mirror's last comparison of all rows.
  var compared: Int64

  /// True for the log of a group.
  var isOfGroup: Bool { number < 0 }
  /// True if no other mirror has the log.
  var isOwn: Bool { number == mirror }
  /// True if all rows are to be compared.
  var compares: Bool { gaps > compared }

  static let tables = """
    CREATE TABLE IF NOT EXISTS ferry_mirror.logs(  -- of mirrors and groups that read the log
      mirror bigint PRIMARY KEY,            -- a group has a negative number
      secret text NOT NULL,                 -- of the mirror's marks in the log
      slot text NOT NULL,
      publication oid,                      -- as the mirror has made it
      source text NOT NULL DEFAULT '',      -- identifies the log
      lsn pg_lsn NOT NULL DEFAULT '0/0',    -- behind the last captured transaction
      gaps bigint NOT NULL DEFAULT 0);      -- before which writes may be missing
    \(LogMembers.tables)
    \(LogIdentities.tables)
    """

  /// Returns the name of a log's publication.
  static func publication(_ number: Int64) -> String {
    number < 0 ? "ferry_group_\(-number)" : "ferry_mirror_\(number)"
  }

  /// Reads the log of a mirror, or of a group by the negative number; `nil` if triggers capture.
  init?(_ mirror: Int64, _ connection: PostgresConnection) throws {
    let exists = try connection.query(
      .once("SELECT to_regclass('ferry_mirror.logged') IS NOT NULL")
    ).first?.bool(0)
    guard exists == true else { return nil }
    let found = try connection.query(
      .once(
        """
        SELECT l.secret, l.slot, l.source, l.lsn::text, l.gaps, d.compared, l.mirror
        FROM ferry_mirror.logged d JOIN ferry_mirror.logs l ON l.mirror = d.log
        WHERE d.mirror = $1
        """), [.int8(mirror)])
    guard let row = found.first else { return nil }
    (self.mirror, number) = (mirror, try row.int8(6))
    (secret, slot, source) = (try row.text(0), try row.text(1), try row.text(2))
    stored = PostgresLSN(try row.text(3)) ?? .zero
    (gaps, compared) = (try row.int8(4), try row.int8(5))
  }

  // MARK: Making

  /// Enters a mirror, or a group, that captures from the log; the slot follows with
  /// ``makeSlot(_:)``.
  static func enter(_ number: Int64, _ connection: PostgresConnection) throws {
    // The name of a slot counts in the whole cluster.
    _ = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.logs(mirror, secret, slot)
        SELECT $1, replace(gen_random_uuid()::text, '-', ''),
          CASE WHEN $1 < 0 THEN 'ferry_group_' ELSE 'ferry_mirror_' END || oid || '_' || abs($1)
        FROM pg_catalog.pg_database WHERE datname = current_database() ON CONFLICT DO NOTHING
        """), [.int8(number)])
    _ = try connection.query(
      .once(
        "INSERT INTO ferry_mirror.logged(mirror, log) VALUES ($1, $1) ON CONFLICT DO NOTHING"),
      [.int8(number)])
  }

  /// The statements to publish the tables, and to log former rows as a whole.
  ///
  /// - Parameter relations: the tables and their partitions. The partitions are in the publication
  ///   with their table; the log has their names, and their own former rows.
  static func capture(
    _ tables: [String], _ relations: [String], _ number: Int64
  ) -> [String] {
    let name = publication(number)
    let targets = tables.joined(separator: ", ")
    let body = """
      BEGIN
        IF EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = \(quoted(postgres: name))) THEN
          ALTER PUBLICATION \(name) SET TABLE \(targets);
        ELSE
          CREATE PUBLICATION \(name) FOR TABLE \(targets);
        END IF;
        -- Another identifier stays: all rows are to be compared.
        UPDATE ferry_mirror.logs SET publication = b.oid FROM pg_catalog.pg_publication b
        WHERE mirror = \(number) AND publication IS NULL AND b.pubname = \(quoted(postgres: name));
      END
      """
    return relations.map(LogIdentities(mirror: number).makeFull) + ["DO \(quoted(postgres: body))"]
  }

  /// Returns `false` if the log is another server's, or of another timeline: writes may be missing.
  /// Stores the identity at first.
  func isCurrent(_ source: String, _ connection: PostgresConnection) throws -> Bool {
    guard self.source.isEmpty else { return self.source == source }
    _ = try connection.query(
      .once("UPDATE ferry_mirror.logs SET source = $2 WHERE mirror = $1"),
      [.int8(number), .text(source)])
    return true
  }

  /// Returns `false` if the publication is gone, or is another one of the name: the log may lack
  /// changes.
  func isPublished(_ connection: PostgresConnection) throws -> Bool {
    try !connection.query(
      .once("SELECT \(Self.published("$1"))"), [.int8(number)]
    ).isEmpty
  }

  /// The SQL after SELECT of the mirror's publication `b`; it has a condition.
  private static func published(_ number: String) -> String {
    """
    FROM ferry_mirror.logged d JOIN ferry_mirror.logs l ON l.mirror = d.log
      JOIN pg_catalog.pg_publication b ON b.oid = coalesce(l.publication, b.oid) AND b.pubname
        = CASE WHEN l.mirror < 0 THEN 'ferry_group_' ELSE 'ferry_mirror_' END || abs(l.mirror)
    WHERE d.mirror = \(number)
    """
  }

  /// Forgets a dropped publication. One of the same name goes: it may publish less.
  func forgetPublication(_ connection: PostgresConnection) throws {
    let name = Self.publication(number)
    do {
      try connection.execute(single: "DROP PUBLICATION IF EXISTS \(name)")
    } catch {
      guard error.isAboutRights else { throw error }
      throw MirrorFault(
        description: "publication \(name) was made again by another role: drop it, and try again")
    }
    try connection.execute(
      single: "UPDATE ferry_mirror.logs SET publication = NULL WHERE mirror = \(number)")
  }

  /// Records the mirror's comparison of all rows behind the known gaps.
  func recordComparison(_ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once("UPDATE ferry_mirror.logged SET compared = greatest(compared, $2) WHERE mirror = $1"),
      [.int8(mirror), .int8(gaps)])
  }

  // MARK: Looking

  /// Returns tables whose writes do not reach the log as needed. A missing publication is made again
  /// instead.
  static func stops(_ number: Int64, _ connection: PostgresConnection) throws -> [MirrorStop] {
    guard try MirrorLog(number, connection) != nil else { return [] }
    let rows = try connection.query(
      .once(
        """
        SELECT r.tab, CASE WHEN c.relreplident <> 'f'
            THEN 'its REPLICA IDENTITY is not FULL, so former values are unknown'
          ELSE 'it is not in the publication of the mirror' END
        FROM ferry_mirror.recorded r JOIN pg_catalog.pg_class c ON c.oid = to_regclass(r.target)
        WHERE r.mirror = $1 AND (c.relreplident <> 'f' OR EXISTS (
          SELECT \(published("r.mirror")) AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_publication_rel p
            WHERE p.prpubid = b.oid AND p.prrelid = c.oid)))
        UNION ALL
        SELECT x.tab, 'the REPLICA IDENTITY of partition ' || min(c.oid::regclass::text)
          || ' is not FULL, so former values are unknown'
        FROM ferry_mirror.recorded r JOIN ferry_mirror.partitions x USING (mirror, tab)
          JOIN pg_catalog.pg_class c ON c.oid = x.part AND c.relkind = 'r' AND c.relreplident <> 'f'
        WHERE x.mirror = $1
          AND x.part IN (SELECT relid FROM pg_partition_tree(to_regclass(r.target))) GROUP BY x.tab
        ORDER BY 1
        """), [.int8(number)])
    return try rows.map { MirrorStop(table: try $0.text(0), reason: try $0.text(1)) }
  }

  // MARK: Removing

  /// Removes the publication, and gives the tables their former identities. A mirror of a group
  /// leaves both to the group. Returns tables with another identity than before.
  static func remove(
    _ number: Int64, _ connection: PostgresConnection
  ) throws -> [String] {
    guard let log = try MirrorLog(number, connection), log.isOwn else { return [] }
    try log.forgetPublication(connection)
    return try LogIdentities(mirror: number).restore(connection)
  }
}

import FerryPlatform
import FerryPostgres
import FerryProtocol

/// The parts of a mirror in PostgreSQL for a capture from the log: a publication of the tables, and
/// a slot, from which the server keeps the log. All calls block.
struct MirrorLog: Sendable, Equatable {
  /// The mirror's number.
  let number: Int64
  /// The word of the mirror's marks. Programs cannot read it, and so hide no write.
  let secret: String
  let slot: String
  /// The position behind the last stored transaction.
  var stored: PostgresLSN
  /// The identity of the log; empty before the first connection.
  var source: String
  /// The number of gaps: writes before the last one may be missing.
  var gaps: Int64
  /// The number of gaps before the last comparison of all rows.
  var compared: Int64

  /// True if all rows are to be compared.
  var compares: Bool { gaps > compared }

  static let tables = """
    CREATE TABLE IF NOT EXISTS ferry_mirror.logs(  -- mirrors that read the log
      mirror bigint PRIMARY KEY,
      secret text NOT NULL,                 -- of the mirror's marks in the log
      slot text NOT NULL,
      source text NOT NULL DEFAULT '',      -- identifies the log
      lsn pg_lsn NOT NULL DEFAULT '0/0',    -- behind the last captured transaction
      gaps bigint NOT NULL DEFAULT 0,       -- before which writes may be missing
      compared bigint NOT NULL DEFAULT 0);  -- the gaps before the last comparison of all rows
    CREATE TABLE IF NOT EXISTS ferry_mirror.identities(  -- the tables' own REPLICA IDENTITY
      mirror bigint NOT NULL, target text NOT NULL,
      identity "char" NOT NULL, index_name text,
      PRIMARY KEY (mirror, target));
    """

  static func publication(_ number: Int64) -> String { "ferry_mirror_\(number)" }

  /// Reads the log of a mirror; `nil` if triggers capture.
  init?(_ number: Int64, _ connection: PostgresConnection) throws {
    let exists = try connection.query(
      .once("SELECT to_regclass('ferry_mirror.logs') IS NOT NULL")
    ).first?.bool(0)
    guard exists == true else { return nil }
    let found = try connection.query(
      .once(
        """
        SELECT secret, slot, source, lsn::text, gaps, compared FROM ferry_mirror.logs
        WHERE mirror = $1
        """), [.int8(number)])
    guard let row = found.first else { return nil }
    self.number = number
    (secret, slot, source) = (try row.text(0), try row.text(1), try row.text(2))
    stored = PostgresLSN(try row.text(3)) ?? .zero
    (gaps, compared) = (try row.int8(4), try row.int8(5))
  }

  // MARK: Making

  /// Enters a mirror that captures from the log; the slot follows with ``makeSlot(_:)``.
  static func enter(_ number: Int64, _ connection: PostgresConnection) throws {
    // The name of a slot counts in the whole cluster.
    _ = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.logs(mirror, secret, slot)
        SELECT $1, replace(gen_random_uuid()::text, '-', ''), 'ferry_mirror_' || oid || '_' || $1
        FROM pg_catalog.pg_database WHERE datname = current_database() ON CONFLICT DO NOTHING
        """), [.int8(number)])
  }

  /// The statements to publish the tables, and to log former rows as a whole.
  ///
  /// - Parameter relations: the tables and their partitions. The partitions are in the publication
  ///   with their table; the log has their names, and their own former rows.
  static func capture(
    _ tables: [MirrorSQL], _ relations: [String], _ number: Int64
  ) -> [String] {
    let name = publication(number)
    let targets = tables.map(\.target).joined(separator: ", ")
    let body = """
      BEGIN
        IF EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = \(quoted(postgres: name))) THEN
          ALTER PUBLICATION \(name) SET TABLE \(targets);
        ELSE
          CREATE PUBLICATION \(name) FOR TABLE \(targets);
        END IF;
      END
      """
    return relations.map { fullIdentity($0, number) } + ["DO \(quoted(postgres: body))"]
  }

  private static func fullIdentity(_ target: String, _ number: Int64) -> String {
    let literal = quoted(postgres: target)
    let body = """
      BEGIN
        INSERT INTO ferry_mirror.identities(mirror, target, identity, index_name)
        SELECT \(number), \(literal), c.relreplident, (SELECT i.relname FROM pg_catalog.pg_index x
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

  /// Creates the slot of a mirror, outside of a transaction. If this fails, a new mirror is removed
  /// again.
  static func makeSlot(
    _ number: Int64, isNew: Bool, _ connection: PostgresConnection
  ) throws -> MirrorLog? {
    do {
      return try makeSlot(number, connection)
    } catch {
      // Without a connection, the same command goes on.
      if isNew, (error as? PostgresError)?.kind == .server { try removeMade(number, connection) }
      throw error
    }
  }

  /// Attempts to remove a new mirror without a slot: programs may have the tables' locks.
  private static let removalsMax = 10

  private static func removeMade(_ number: Int64, _ connection: PostgresConnection) throws {
    var attempt = 1
    while true {
      do {
        _ = try MirrorLedger(number: number).remove(connection)
        return
      } catch let error as PostgresError where error.isWait && attempt < removalsMax {
        attempt += 1
      }
    }
  }

  /// Creates the slot if it is missing or lost, outside of a transaction.
  static func makeSlot(_ number: Int64, _ connection: PostgresConnection) throws -> MirrorLog? {
    guard let log = try MirrorLog(number, connection) else { return nil }
    if try log.slotState(connection)?.isUsable == true { return log }
    try log.replaceSlot(connection)
    return try MirrorLog(number, connection)
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

  /// Begins a new slot at the present end of the log, in place of the former one. Writes before it
  /// are missing.
  func replaceSlot(_ connection: PostgresConnection) throws {
    // First the gap: a kill between the steps leaves a comparison to make. The place may be another
    // server's.
    let found = try connection.query(
      .once(
        """
        UPDATE ferry_mirror.logs SET gaps = gaps + 1, source = '', lsn = '0/0' WHERE mirror = $1
        RETURNING mirror
        """), [.int8(number)])
    // A slot without an entry would keep the log for ever.
    if found.isEmpty { throw MirrorFault(description: "the mirror was removed meanwhile") }
    try dropSlot(connection)
    let made = try createSlot(connection)
    _ = try connection.query(
      .once("UPDATE ferry_mirror.logs SET lsn = $2::text::pg_lsn WHERE mirror = $1"),
      [.int8(number), .text(made ?? "0/0")])
  }

  /// PostgreSQL creates a slot behind all present transactions of the server, and would wait for
  /// them without an end.
  private static let slotWaitMax = "30s"

  /// Returns the slot's position.
  private func createSlot(_ connection: PostgresConnection) throws -> String? {
    let set = PostgresStatement.once("SELECT set_config('statement_timeout', $1, false)")
    let former =
      try connection.query(.once("SELECT current_setting('statement_timeout')")).first?.text(0)
    _ = try connection.query(set, [.text(Self.slotWaitMax)])
    do {
      let made = try connection.query(
        .once("SELECT lsn::text FROM pg_create_logical_replication_slot($1, 'pgoutput')"),
        [.text(slot)])
      _ = try connection.query(set, [.text(former ?? "0")])
      return try made.first?.text(0)
    } catch {
      guard error.kind == .server else { throw error }
      _ = try connection.query(set, [.text(former ?? "0")])
      guard error.sqlState == "57014" else { throw error }
      throw PostgresError(
        .server,
        "a transaction on the server lasts too long, and a reader of the log begins behind it; try "
          + "again when it has ended",
        sqlState: error.sqlState)
    }
  }

  /// Records a comparison of all rows behind the known gaps.
  func recordComparison(_ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once("UPDATE ferry_mirror.logs SET compared = greatest(compared, $2) WHERE mirror = $1"),
      [.int8(number), .int8(gaps)])
  }

  // MARK: Looking

  /// The state of a slot.
  struct SlotState: Sendable, Equatable {
    var isUsable: Bool
    var isActive: Bool
    /// The kept log, in bytes.
    var retained: Int64
    /// True if the server keeps the log without a limit.
    var isUnlimited: Bool
    /// True if the kept log is within the server's limits.
    var isSafe: Bool
  }

  /// Returns the state of the slot; `nil` if it is missing.
  func slotState(_ connection: PostgresConnection) throws -> SlotState? {
    try connection.query(
      .once(
        """
        SELECT coalesce(wal_status, 'lost') <> 'lost' AND plugin = 'pgoutput'
            AND database = current_database(), active,
          coalesce(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), restart_lsn), 0)::bigint,
          current_setting('max_slot_wal_keep_size') = '-1',
          coalesce(wal_status IN ('reserved', 'extended'), false)
        FROM pg_catalog.pg_replication_slots WHERE slot_name = $1
        """), [.text(slot)]
    ).first.map {
      SlotState(
        isUsable: try $0.bool(0), isActive: try $0.bool(1), retained: try $0.int8(2),
        isUnlimited: try $0.bool(3), isSafe: try $0.bool(4))
    }
  }

  /// Returns the log kept for a mirror; `nil` if triggers capture.
  static func kept(_ number: Int64, _ connection: PostgresConnection) throws -> Mirror.KeptLog? {
    guard let log = try MirrorLog(number, connection) else { return nil }
    guard let state = try log.slotState(connection), state.isUsable else {
      return Mirror.KeptLog(bytes: nil, isUnlimited: false, isSafe: false)
    }
    return Mirror.KeptLog(
      bytes: state.retained, isUnlimited: state.isUnlimited, isSafe: state.isSafe)
  }

  /// Returns tables whose writes do not reach the log as needed.
  static func stops(_ number: Int64, _ connection: PostgresConnection) throws -> [MirrorStop] {
    guard try MirrorLog(number, connection) != nil else { return [] }
    let rows = try connection.query(
      .once(
        """
        SELECT r.tab, CASE WHEN c.relreplident <> 'f'
            THEN 'its REPLICA IDENTITY is not FULL, so former values are unknown'
          ELSE 'it is not in the publication of the mirror' END
        FROM ferry_mirror.recorded r JOIN pg_catalog.pg_class c ON c.oid = to_regclass(r.target)
        WHERE r.mirror = $1 AND (c.relreplident <> 'f' OR NOT EXISTS (
          SELECT FROM pg_catalog.pg_publication_rel p
            JOIN pg_catalog.pg_publication b ON b.oid = p.prpubid
          WHERE b.pubname = \(quoted(postgres: publication(number))) AND p.prrelid = c.oid))
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

  /// Returns the tables whose identity the mirror has changed.
  static func identified(
    _ number: Int64, _ connection: PostgresConnection
  ) throws -> [String] {
    guard try MirrorLog(number, connection) != nil else { return [] }
    return try connection.query(
      .once("SELECT target FROM ferry_mirror.identities WHERE mirror = $1"), [.int8(number)]
    ).map { try $0.text(0) }
  }

  /// Removes the publication, and gives the tables their former identities. Another mirror of a
  /// table keeps the identity, and gives it back later. Returns tables with another one than before:
  /// the index is gone or unfit.
  static func remove(
    _ number: Int64, _ connection: PostgresConnection
  ) throws -> [String] {
    guard try MirrorLog(number, connection) != nil else { return [] }
    try connection.execute(
      single: "DROP PUBLICATION IF EXISTS \(publication(number))")
    let rows = try connection.query(
      .once(
        """
        WITH own AS (DELETE FROM ferry_mirror.identities WHERE mirror = $1 RETURNING *),
          others AS (UPDATE ferry_mirror.identities i
            SET identity = o.identity, index_name = o.index_name FROM own o
            WHERE i.target = o.target AND i.mirror <> $1 AND i.identity = 'f' RETURNING i.target)
        SELECT target, identity::text, index_name FROM own o
        WHERE to_regclass(target) IS NOT NULL AND NOT EXISTS (
          SELECT FROM ferry_mirror.identities i WHERE i.target = o.target AND i.mirror <> $1)
        """), [.int8(number)])
    var changed: [String] = []
    for row in rows {
      let (target, index) = (try row.text(0), try row.ifPresent(2, as: String.self))
      switch (try row.text(1), index) {
      case ("d", _): try setIdentity("DEFAULT", of: target, connection)
      case ("n", _): try setIdentity("NOTHING", of: target, connection)
      case ("i", let index?):
        if try setIndex(index, of: target, connection) { continue }
        try setIdentity("DEFAULT", of: target, connection)
        changed.append(
          "table \(target): the index \(index) of its REPLICA IDENTITY is gone or unfit, so it is "
            + "the primary key now")
      default: continue
      }
    }
    try connection.execute(single: "DELETE FROM ferry_mirror.logs WHERE mirror = \(number)")
    return changed
  }

  private static func setIdentity(
    _ identity: String, of target: String, _ connection: PostgresConnection
  ) throws {
    try connection.execute(single: "ALTER TABLE \(target) REPLICA IDENTITY \(identity)")
  }

  /// Returns `false` if a table has no such index any more, or another one of the name.
  private static func setIndex(
    _ index: String, of target: String, _ connection: PostgresConnection
  ) throws -> Bool {
    try connection.execute("SAVEPOINT ferry_identity")
    do {
      try setIdentity("USING INDEX \(quoted(Name(index)))", of: target, connection)
      try connection.execute("RELEASE SAVEPOINT ferry_identity")
      return true
    } catch let error as PostgresError where error.isAboutDefinition || error.sqlState == "55000" {
      try connection.execute(
        "ROLLBACK TO SAVEPOINT ferry_identity; RELEASE SAVEPOINT ferry_identity")
      return false
    }
  }

  /// Drops the slot, outside of a transaction. Nobody reads it.
  func dropSlot(_ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once(
        """
        SELECT pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots
        WHERE slot_name = $1 AND database = current_database()
        """), [.text(slot)])
  }
}

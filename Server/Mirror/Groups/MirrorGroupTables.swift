import FerryPostgres
import FerryProtocol

/// A group's tables and triggers in PostgreSQL. The triggers, or the reader of the log, record values
/// of the space column without a mirror for their rows. All calls block.
struct MirrorGroupTables: Sendable {
  let number: Int64

  /// The most bytes of a recorded value.
  static let valueBytesMax = 256

  private static let tables = """
    CREATE TABLE IF NOT EXISTS ferry_mirror.groups(
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      name text NOT NULL UNIQUE);
    -- Several times the same, if programs write it at once: none of them waits for another.
    CREATE TABLE IF NOT EXISTS ferry_mirror.wanted(
      grp bigint NOT NULL, value text NOT NULL,
      reason text);                         -- why the value has no mirror yet
    CREATE INDEX IF NOT EXISTS wanted_value ON ferry_mirror.wanted USING hash (value);
    """

  init(number: Int64) { self.number = number }

  /// Returns the tables of a group; `nil` if the database has none of the name.
  init?(_ name: String, _ connection: PostgresConnection) throws {
    let exists = try connection.query(
      .once("SELECT to_regclass('ferry_mirror.groups') IS NOT NULL")
    ).first?.bool(0)
    guard exists == true else { return nil }
    let found = try connection.query(
      .once("SELECT number FROM ferry_mirror.groups WHERE name = $1"), [.text(name)])
    guard let number = try found.first?.int8(0) else { return nil }
    self.number = number
  }

  /// Enters a group, or finds it.
  init(entering name: String, _ connection: PostgresConnection) throws {
    // Two concurrent ones would both create the schema.
    try connection.execute("SELECT pg_advisory_xact_lock(7310593)")
    try connection.execute(MirrorLedger.tables)
    try connection.execute(Self.tables)
    let made = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.groups(name) VALUES ($1)
        ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING number
        """), [.text(name)])
    guard let number = try made.first?.int8(0) else {
      throw MirrorFault(description: "the database does not enter group \(name)")
    }
    self.number = number
  }

  /// The number of the group's stops, and of the log. Mirrors have positive ones.
  var log: Int64 { -number }

  /// Returns the tables whose new values are not recorded any more.
  func stops(_ connection: PostgresConnection) throws -> [MirrorStop] {
    try MirrorLedger(number: log).stops(connection)
  }

  /// The payload of notifications on ``MirrorLedger/channel``.
  var payload: String { "group \(number)" }

  // MARK: Triggers

  /// Creates the triggers of a table, and records the values in it.
  func watch(
    _ table: String, column: String, in schema: String, _ connection: PostgresConnection
  ) throws {
    let place = PostgresPlace(schema: schema, table: table, column: column)
    let target = place.target
    let oid = try connection.query(
      .once("SELECT \(quoted(postgres: target))::regclass::oid::bigint")
    ).first?.int8(0)
    guard let oid else { throw MirrorFault(description: "the database has no table \(table)") }
    let function = "ferry_mirror.want_\(number)_\(oid)"
    let body = """
      BEGIN
        \(noting(place, from: "written"));
        IF FOUND AND current_setting('max_prepared_transactions') = '0' THEN
          PERFORM pg_notify('\(MirrorLedger.channel)', '\(payload)');
        END IF;
        RETURN NULL;
      EXCEPTION WHEN OTHERS THEN
        \(MirrorStop.insertion(of: log, Name(table)))
        RETURN NULL;
      END
      """
    try connection.execute(
      single: """
        CREATE OR REPLACE FUNCTION \(function)() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp AS \(quoted(postgres: body))
        """)
    for event in ["INSERT", "UPDATE"] {
      try connection.execute(
        // text: the event is one of two words
        single: """
          CREATE OR REPLACE TRIGGER ferry_group_\(number)_\(event.lowercased()) AFTER \(event)
          ON \(target) REFERENCING NEW TABLE AS written FOR EACH STATEMENT
          EXECUTE FUNCTION \(function)()
          """)
    }
    // No program writes until the end of this transaction: the triggers see all later values.
    try connection.execute(single: noting(place, from: target))
  }

  private struct PostgresPlace {
    let schema: String
    let table: String
    let column: String

    var target: String { "\(quoted(Name(schema))).\(quoted(Name(table)))" }
  }

  /// Records the values in tables whose later writes the reader of the log sees.
  func recordPresent(
    _ tables: [String], column: String, in schema: String, _ connection: PostgresConnection
  ) throws {
    for table in tables {
      let place = PostgresPlace(schema: schema, table: table, column: column)
      try connection.execute(single: noting(place, from: place.target))
    }
  }

  /// Records the values of some rows, if they have no mirror and are not recorded yet.
  private func noting(_ place: PostgresPlace, from rows: String) -> String {
    """
    INSERT INTO ferry_mirror.wanted(grp, value) SELECT \(number), v.value
    FROM (SELECT DISTINCT \(quoted(Name(place.column)))::text AS value FROM \(rows)) v
    WHERE octet_length(v.value) BETWEEN 1 AND \(Self.valueBytesMax)
      AND NOT EXISTS (SELECT FROM ferry_mirror.wanted w
        WHERE w.value = v.value AND w.grp = \(number))
      AND NOT EXISTS (SELECT FROM ferry_mirror.adopted a
        JOIN ferry_mirror.mirrors m ON m.number = a.mirror
        WHERE a.tab = \(quoted(postgres: place.table))
          AND a.space_column = \(quoted(postgres: place.column)) AND a.space_value = v.value
          AND m.schema = \(quoted(postgres: place.schema)))
    """
  }

  /// Removes the triggers, which go with their functions, the log's parts and the group's entry. The
  /// mirrors are removed before. Returns parts of tables that are not as they were before the group.
  @discardableResult
  func remove(_ connection: PostgresConnection) throws -> [String] {
    let slot = try MirrorLog(log, connection)
    try slot?.dropSlot(connection)
    let changed = try removeParts(connection)
    // A running group may have made it again meanwhile.
    try slot?.dropSlot(connection)
    return changed
  }

  /// Removes the mirrors of the group as well.
  func removeAll(_ connection: PostgresConnection) throws -> [String] {
    let members = try connection.query(
      .once(
        """
        SELECT mirror FROM ferry_mirror.logged WHERE log = $1 AND mirror > 0
        UNION SELECT mirror FROM ferry_mirror.recorded WHERE starts_with(function, $2) ORDER BY 1
        """),
      [.int8(log), .text("ferry_mirror.capture_group_\(number)_")]
    ).map { try $0.int8(0) }
    let changed = try members.flatMap { try MirrorLedger(number: $0).remove(connection) }
    return try changed + remove(connection)
  }

  private func removeParts(_ connection: PostgresConnection) throws -> [String] {
    try connection.transaction { connection in
      try TableLocks.lock(
        TableLocks.triggered(by: "^(want|capture_group)_\(number)_", connection)
          + LogIdentities(mirror: log).targets(connection), .all, connection)
      let changed = try MirrorLog.remove(log, connection)
      try connection.execute(single: "DELETE FROM ferry_mirror.logs WHERE mirror = \(log)")
      try LogMembers.remove(log, connection)
      try connection.execute(
        """
        DO '
          DECLARE found record;
          BEGIN
            FOR found IN SELECT oid::regprocedure AS target FROM pg_proc
              WHERE pronamespace = ''ferry_mirror''::regnamespace AND proname ~ ''^(want|capture_group)_\(number)_''
            LOOP
              EXECUTE format(''DROP FUNCTION %s CASCADE'', found.target);
            END LOOP;
          END'
        """)
      try connection.execute(single: "DELETE FROM ferry_mirror.wanted WHERE grp = \(number)")
      try connection.execute(
        single: """
          DELETE FROM ferry_mirror.group_functions
          WHERE starts_with(function, 'ferry_mirror.capture_group_\(number)_')
          """)
      try MirrorLedger(number: log).resume(connection)
      try connection.execute(single: "DELETE FROM ferry_mirror.groups WHERE number = \(number)")
      return changed
    }
  }

  // MARK: Values

  /// Returns the values without a mirror, each once, with the reason of the last attempt.
  func wanted(_ connection: PostgresConnection) throws -> [WantedSpace] {
    try connection.query(
      .once(
        """
        SELECT value, max(reason) FROM ferry_mirror.wanted WHERE grp = $1
        GROUP BY value ORDER BY value
        """), [.int8(number)]
    ).map { WantedSpace(value: try $0.text(0), reason: try $0.ifPresent(1, as: String.self)) }
  }

  /// Forgets the recorded values and stops; ``watch(_:column:in:_:)`` records the values of
  /// existing rows.
  func forgetWanted(_ connection: PostgresConnection) throws {
    try MirrorLedger(number: log).resume(connection)
    try connection.execute(single: "DELETE FROM ferry_mirror.wanted WHERE grp = \(number)")
  }

  /// Ends the wait of a value, or stores the reason why it goes on.
  func resolve(_ value: String, reason: String?, _ connection: PostgresConnection) throws {
    let sql =
      reason == nil
      ? "DELETE FROM ferry_mirror.wanted WHERE grp = $1 AND value = $2 AND $3::text IS NULL"
      : "UPDATE ferry_mirror.wanted SET reason = $3 WHERE grp = $1 AND value = $2"
    _ = try connection.query(.once(sql), [.int8(number), .text(value), .text(reason)])
  }
}

/// A value of a group's column without a mirror.
package struct WantedSpace: Sendable, Equatable {
  package var value: String
  /// The reason why the last attempt to make one failed; `nil` before the first.
  package var reason: String?
}

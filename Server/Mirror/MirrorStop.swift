import FerryPlatform
import FerryPostgres
import FerryProtocol
import FerrySyncClient

/// A table without a record of writes any more, because the definition has changed. The mirror then
/// carries no row of any table: it could undo an unseen write.
package struct MirrorStop: Sendable, Equatable, CustomStringConvertible {
  /// Empty if several tables may be the reason.
  package var table: String
  package var reason: String
  /// True if a definition is the reason: the mirror goes on by itself with one that fits.
  package var isAboutDefinition = false

  package var description: String { (table.isEmpty ? "" : "table \(table): ") + reason }

  /// The SQL of whether a definition is the reason for a failed capture, and not a missing right.
  static let isAboutDefinition = "(SQLSTATE LIKE '42%' AND SQLSTATE <> '42501')"

  /// Returns the SQL to record a stop in the transaction of the program's write. One record is
  /// enough.
  static func insertion(of mirror: Int64, _ table: Name) -> String {
    """
    INSERT INTO \(MirrorSQL.ledger).stops(mirror, tab, reason, definition)
          SELECT \(mirror), \(quoted(postgres: table.text)), SQLERRM, \(isAboutDefinition)
          WHERE NOT EXISTS (SELECT FROM \(MirrorSQL.ledger).stops s
            WHERE s.mirror = \(mirror) AND s.tab = \(quoted(postgres: table.text)));
        \(MirrorLedger.notification(of: mirror))
    """
  }
}

/// The error of a mirror that has stopped itself.
package struct MirrorStopped: Error, CustomStringConvertible {
  package let name: String
  package let stops: [MirrorStop]

  package init(name: String, stops: [MirrorStop]) { (self.name, self.stops) = (name, stops) }

  package var description: String {
    let shown = stops.map(\.description).joined(separator: "; ")
    return "writes of programs are not recorded any more: \(shown)"
  }

  /// The next step of a user.
  package var wayOut: String {
    "give the tables their former names and types, and start the mirror again: it compares all rows; "
      + "if it is still stopped, run `ferryd mirror verify \(name) --repair space`: the space gets the "
      + "tables' rows; or remove the mirror, and adopt the tables as they are now"
  }
}

/// Tables whose writes are not recorded. All calls block.
extension MirrorLedger {
  /// Returns the tables whose writes are not recorded: programs' writes have recorded it, or the
  /// table, a column or the triggers are gone. A row hidden from the mirror would count as deleted.
  func stops(_ connection: PostgresConnection) throws -> [MirrorStop] {
    let rows = try foundStops(connection)
    // Nothing else shows that writes may have been missed.
    for row in rows where try row.bool(2) { try store(Self.stop(row), connection) }
    let stops = try rows.map(Self.stop)
    let unlogged = try MirrorLog.stops(number, connection)
    for stop in unlogged { try store(stop, connection) }
    return stops + unlogged.filter { stop in !stops.contains { $0.table == stop.table } }
  }

  /// Returns the same tables, and stores nothing.
  func presentStops(_ connection: PostgresConnection) throws -> [MirrorStop] {
    let stops = try foundStops(connection).map(Self.stop)
    let unlogged = try MirrorLog.stops(number, connection)
    return stops + unlogged.filter { stop in !stops.contains { $0.table == stop.table } }
  }

  private static func stop(_ row: PostgresRow) throws -> MirrorStop {
    MirrorStop(
      table: try row.text(0), reason: try row.text(1), isAboutDefinition: try row.bool(3))
  }

  private func foundStops(_ connection: PostgresConnection) throws -> PostgresRows {
    try connection.query(
      PostgresStatement(
        "mirror_stops",
        """
        SELECT tab, min(reason), bool_or(is_new), bool_and(definition) FROM (
          SELECT tab, reason, false AS is_new, definition FROM ferry_mirror.stops WHERE mirror = $1
          UNION ALL
          SELECT c.tab, CASE WHEN r.oid IS NULL THEN 'the table is gone'
            WHEN l.names IS NOT NULL THEN 'column ' || l.names || ' is gone'
            WHEN p.is_part THEN
              'the table is a part of another one: writes to that one run no triggers of this one'
            WHEN row_security_active(r.oid) THEN
              'row-level security hides rows from role ' || current_user || ': give it BYPASSRLS'
            ELSE 'triggers of the mirror are gone or disabled' END,
            r.oid IS NULL OR l.names IS NULL, r.oid IS NULL OR l.names IS NOT NULL
          FROM ferry_mirror.recorded c CROSS JOIN LATERAL (
            SELECT to_regclass(c.target)::oid AS oid) r
          CROSS JOIN LATERAL (
            SELECT string_agg(n, ', ') AS names FROM unnest(c.columns) n
            WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = r.oid AND a.attname = n AND NOT a.attisdropped)) l
          CROSS JOIN LATERAL (
            SELECT EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid = r.oid) AS is_part) p
          WHERE c.mirror = $1 AND (r.oid IS NULL OR l.names IS NOT NULL OR p.is_part
            OR row_security_active(r.oid) OR EXISTS (
              SELECT FROM (SELECT r.oid UNION SELECT t.relid FROM pg_partition_tree(r.oid) t
                JOIN ferry_mirror.partitions x
                  ON x.mirror = c.mirror AND x.tab = c.tab AND x.part = t.relid) o(oid)
              WHERE c.triggers > (SELECT count(*) FROM pg_catalog.pg_trigger g
                WHERE g.tgrelid = o.oid AND g.tgfoid = to_regproc(c.function)
                  AND g.tgenabled <> 'D')))) s
        GROUP BY tab ORDER BY tab
        """), [.int8(number)])
  }

  /// Stores a stop until ``resume(_:)``.
  func store(_ stop: MirrorStop, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.stops(mirror, tab, reason, definition) SELECT $1, $2, $3, $4
        WHERE NOT EXISTS (SELECT FROM ferry_mirror.stops WHERE mirror = $1 AND tab = $2)
        """),
      [
        .int8(number), .text(stop.table), .text(stop.reason), .bool(stop.isAboutDefinition),
      ])
    // A running mirror stops at once, although nothing may travel.
    try connection.execute(single: "SELECT pg_notify('\(Self.channel)', '\(number)')")
  }

  /// Makes the next round make all functions and triggers again.
  func forgetLayout(_ connection: PostgresConnection) throws {
    try connection.execute(
      single: "UPDATE ferry_mirror.mirrors SET layout = '' WHERE number = \(number)")
  }

  /// Ends the stops: both sides were compared.
  func resume(_ connection: PostgresConnection) throws {
    try connection.execute(single: "DELETE FROM ferry_mirror.stops WHERE mirror = \(number)")
  }

  /// Stores the reason if the mirror cannot read or write its tables as they are; `nil` if it can.
  func store(fault: String?, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      .once("UPDATE ferry_mirror.mirrors SET fault = $2 WHERE number = $1 AND fault <> $2"),
      [.int8(number), .text(fault ?? "")])
  }

  /// Enters the tables whose writes are recorded.
  ///
  /// - Parameter shapes: followed changes of tables; a table without one has the shape of before, or
  ///   the present one at first.
  func enter(
    _ sql: [MirrorSQL], shapes: [Name: String] = [:], _ connection: PostgresConnection
  ) throws {
    let former = try connection.query(
      .once("DELETE FROM ferry_mirror.recorded WHERE mirror = $1 RETURNING tab, shape"),
      [.int8(number)]
    ).map { (Name(try $0.text(0)), try $0.text(1)) }
    let known = Dictionary(former) { $1 }
    for sql in sql {
      let (name, isFollowed) = (
        sql.table.name, sql.table.adoption != nil && sql.capture.group == nil
      )
      let shape = [shapes[name], known[name]].compactMap(\.self).first { !$0.isEmpty }
      let space = sql.table.adoption?.space.map { Name($0.name) }
      let columns = sql.table.all.map(\.name).filter { $0 != space } + (space.map { [$0] } ?? [])
      _ = try connection.query(
        .once(
          """
          INSERT INTO ferry_mirror.recorded(mirror, tab, target, function, triggers, columns, shape)
          SELECT $1::bigint, $2::text, $3::text, $4::text, $5::bigint, $6::text[],
            CASE WHEN $7::boolean THEN coalesce($8::text,
              \(TableShape.sql("to_regclass($3::text)::oid")), '') ELSE '' END
          """),
        [
          .int8(number), .text(sql.table.name.text), .text(sql.target), .text(sql.function),
          .int8(sql.triggers?.count ?? 0),
          .array(PostgresArray(columns.map { Optional($0.text) })), .bool(isFollowed), .text(shape),
        ])
    }
  }
}

extension Error {
  /// True if the same call may succeed later without any change: the network, the server or another
  /// program is the reason.
  var isPassing: Bool {
    switch self as any Error {
    case is CancellationError: true
    case let error as ReplicaError: error.isTransient
    case let error as PostgresError:
      error.kind != .server
        // Connections, transactions, resources, locks and the server itself.
        || ["08", "40", "53", "55", "57", "58"].contains {
          error.sqlState?.begins(with: $0) == true
        }
    default: false
    }
  }
}

extension PostgresError {
  /// True if a definition is the reason: a name is gone, or a type has changed. An error in a
  /// trigger concerns its row, and a right may be granted meanwhile.
  var isAboutDefinition: Bool {
    kind == .server && sqlState?.begins(with: "42") == true && !isAboutRights && !isAboutRow
  }

  /// True if the mirror's role lacks a right.
  var isAboutRights: Bool { kind == .server && sqlState == "42501" }
}

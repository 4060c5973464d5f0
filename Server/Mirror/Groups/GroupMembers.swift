import FerryPostgres
import FerryProtocol

/// The mirrors for which the triggers of a group capture; all calls block.
struct GroupMembers {
  let connection: PostgresConnection

  /// Locks capturing functions until the end of the transaction: two mirrors of a group may begin or
  /// end at once.
  func lock(_ functions: [String]) throws {
    for function in Set(functions).sorted() {
      _ = try connection.query(
        .once("SELECT pg_advisory_xact_lock(7310594, hashtext($1))"), [.text(function)])
    }
  }

  /// Returns a mirror's table with the group's triggers, or with own ones if those capture other
  /// columns: the schemas of two spaces may differ.
  func joined(_ sql: MirrorSQL) throws -> MirrorSQL {
    guard sql.capture.group != nil else { return sql }
    let found = try connection.query(
      .once(
        """
        SELECT FROM ferry_mirror.group_functions c WHERE c.function = $1 AND c.definition <> $2
          AND EXISTS (SELECT FROM ferry_mirror.recorded r
            WHERE r.function = c.function AND r.mirror <> $3)
        """),
      [.text(sql.function), .text(Self.definition(sql)), .int8(sql.mirror)])
    if found.isEmpty { return sql }
    var own = sql
    own.capture = .triggers
    return own
  }

  /// Describes the captured part of a table.
  private static func definition(_ sql: MirrorSQL) -> String {
    let part = { (column: MirrorColumn) in
      "\(quoted(column.name)) \(column.type.rawValue) \(column.affinity.sql())"
    }
    let (key, columns) = (sql.table.key.map(part), sql.table.columns.map(part).sorted())
    return (["\(key.count)", sql.table.adoption?.condition ?? ""] + key + columns)
      .joined(separator: "\n")
  }

  /// Makes the functions with the mirrors of some tables, after the mirrors were entered.
  func publish(_ tables: [MirrorSQL]) throws {
    for sql in tables where sql.capture.group != nil {
      _ = try connection.query(
        .once(
          """
          INSERT INTO ferry_mirror.group_functions(function, definition) VALUES ($1, $2)
          ON CONFLICT (function) DO UPDATE SET definition = excluded.definition
          """), [.text(sql.function), .text(Self.definition(sql))])
      try publish(sql.function)
    }
  }

  func publish(_ function: String) throws {
    let found = try connection.query(
      .once(
        """
        SELECT coalesce(jsonb_object_agg(a.space_value, CASE WHEN EXISTS (
              SELECT FROM ferry_mirror.adopted x WHERE x.mirror = r.mirror AND NOT x.done)
            THEN -r.mirror ELSE r.mirror END), '{}')::text,
          coalesce(array_agg(r.mirror ORDER BY r.mirror), '{}')::text
        FROM ferry_mirror.recorded r JOIN ferry_mirror.adopted a
          ON a.mirror = r.mirror AND a.tab = r.tab
        WHERE r.function = $1
        """), [.text(function)])
    guard let row = found.first else { return }
    let statements = GroupCapture.members(
      of: function, spaces: try row.text(0), mirrors: try row.text(1))
    for statement in statements { try connection.execute(single: statement) }
  }
}

extension MirrorLedger {
  /// Returns the tables with a group's triggers that capture for the mirror.
  func grouped(
    _ connection: PostgresConnection
  ) throws -> [(target: String, function: String)] {
    try connection.query(
      .once(
        """
        SELECT r.target, r.function FROM ferry_mirror.recorded r
          JOIN ferry_mirror.group_functions c ON c.function = r.function WHERE r.mirror = $1
        """), [.int8(number)]
    ).map { (try $0.text(0), try $0.text(1)) }
  }
}

extension MirrorConfiguration {
  /// Returns the number of the mirror's group; `nil` if it has none.
  func group(_ connection: PostgresConnection) throws -> Int64? {
    guard let group else { return nil }
    return try MirrorGroupTables(group, connection)?.number
  }
}
